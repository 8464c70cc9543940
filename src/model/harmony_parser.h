// Harmony's messages out of a stream of tokens, as they are sampled. A model may write anything, so
// nothing is an error: what cannot be read as a message becomes the content of one with a flag.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/harmony.h"
#include "model/utf8.h"

namespace gauntlet::model {

enum class MessageEnd {
  open,  // more may come
  end,   // <|end|>: another message may follow
  done,  // <|return|>: the turn is over
  call,  // <|call|>: a tool is to answer
  cut,   // the stream ended, or another message began
};

struct ParsedMessage {
  MessageHeader header;
  std::string content;      // valid UTF-8
  std::string header_text;  // as it came, special tokens spelled
  MessageEnd end = MessageEnd::open;
  bool malformed = false;  // something in it was not as harmony has it

  Message to_message() const { return {.header = header, .content = content}; }
};

class HarmonyParser {
 public:
  /// With a role, the stream begins within that role's header: what follows a prompt that was
  /// rendered for completion. `harmony` must outlive this.
  explicit HarmonyParser(const Harmony& harmony, std::optional<Role> role = Role::assistant);
  explicit HarmonyParser(Harmony&&, std::optional<Role> = Role::assistant) = delete;

  /// Takes the next token, of any value; returns what it adds to the content of messages().back().
  /// A character that is split over tokens is held back until it is whole.
  std::string push(std::int32_t id);
  /// Nothing follows; returns what was still held back.
  std::string finish();

  /// A token whose text the last push() or finish() put into the content, and how many bytes of it.
  struct Placed {
    std::size_t token = 0;  // its number in the stream, from 0
    std::size_t bytes = 0;
  };
  /// In the stream's order. A header that turns out to be none places tokens that came before.
  const std::vector<Placed>& placed() const { return placed_; }

  /// All messages so far; the last may be open.
  const std::vector<ParsedMessage>& messages() const { return messages_; }

 private:
  enum class State { between, header, content };

  enum class HeaderPart { author, channel, constraint };
  struct HeaderToken {
    std::size_t token = 0;
    HeaderPart part = HeaderPart::author;
    std::size_t bytes = 0;
  };
  /// A header as it comes. Only tokens make a channel or a constraint, never text that spells them.
  struct Header {
    std::optional<Role> role;  // known beforehand
    std::string author;        // before any special token
    std::optional<std::string> channel;
    std::optional<std::string> constraint;
    std::string text;                 // all of it
    std::vector<HeaderToken> tokens;  // that the parts are made of
    bool odd = false;                 // parts are there twice, or others' tokens are
  };

  std::string push_special(std::int32_t id);
  std::string push_header_special(std::int32_t id);
  std::string push_text(std::string_view bytes);
  std::string push_header_text(std::string_view bytes);
  std::string add_content(std::string_view bytes);
  /// Notes the tokens of a header that became content, but for the first bytes of two parts.
  void place_header(std::size_t skipped_author, std::size_t skipped_channel);
  void begin_header(std::optional<Role> role);
  /// Opens a message for content that no header came before.
  void open_without_header();
  /// Reads the header that <|message|> ended.
  std::string open_message();
  /// Gives up on a header: all but its channel and author is content.
  std::string give_up_header();
  std::string close(MessageEnd end);
  ParsedMessage& current() { return messages_.back(); }

  const Harmony* harmony_;
  State state_ = State::between;
  Header header_;
  Utf8Holder holder_;
  std::size_t num_pushed_ = 0;
  std::vector<Placed> placed_;
  std::vector<ParsedMessage> messages_;
};

}  // namespace gauntlet::model
