#include "model/harmony/harmony_parser.h"

#include <algorithm>

#include "core/text/text.h"

namespace gauntlet::model::inline harmony {
namespace {

/// A header longer than this, or with a line end, is no header: a model that does not write harmony
/// would otherwise be silent until it stops.
constexpr std::size_t kMaxTurnHeaderBytes = 512;
constexpr std::string_view kConstrainText = "<|constrain|>";

std::string lossy(std::string_view bytes) {
  Utf8Holder holder;
  std::string text = holder.push(bytes);
  return text + holder.finish();
}

/// Takes the first word off a text.
std::string take_word(std::string& text) {
  const auto is_space = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  const auto begin = std::find_if_not(text.begin(), text.end(), is_space);
  const auto end = std::find_if(begin, text.end(), is_space);
  std::string word(begin, end);
  text.erase(text.begin(), end);
  return word;
}

void take_author(const std::string& word, MessageHeader& header) {
  const std::size_t colon = word.find(':');
  if (const auto role = role_named(word.substr(0, colon))) {
    header.role = *role;
    header.name = colon == std::string::npos ? "" : word.substr(colon + 1);
  } else {
    header.role = Role::tool;
    header.name = word;
  }
}

/// Whether what follows a known role may yet become a header: `to=` comes next, after the role
/// where it is said again. Anything else is text of a model that wrote none.
bool may_be_header(std::string text, Role role) {
  const auto goes_on = [&](std::string_view word, std::string_view with) {
    return text.empty() ? with.starts_with(word) || word.starts_with(with) : word.starts_with(with);
  };
  std::string word = take_word(text);
  if (goes_on(word, "to=")) return true;
  const std::string_view name = name_of(role);
  if (text.empty()) return name.starts_with(word) || word.starts_with(std::string(name) + ":");
  if (word != name && !word.starts_with(std::string(name) + ":")) return false;
  word = take_word(text);
  return goes_on(word, "to=");
}

std::string without_prefix(const std::string& text, std::string_view prefix) {
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

/// The words behind author and channel: [recipient] [content type]. False when there are more.
bool read_rest(std::vector<std::string> words, const std::optional<std::string>& constraint,
               MessageHeader& header) {
  if (constraint) {
    header.content_type = std::string(kConstrainText) + *constraint;
  } else if (words.size() > 1 && !words.back().starts_with("to=")) {
    header.content_type = words.back();
    words.pop_back();
  }
  if (words.empty()) return true;
  header.recipient = without_prefix(words.back(), "to=");
  return words.size() == 1 && !header.recipient.empty();
}

}  // namespace

HarmonyParser::HarmonyParser(const Harmony& harmony, std::optional<Role> role)
    : harmony_(&harmony) {
  if (role) begin_header(role);
}

std::string HarmonyParser::push(std::int32_t id) {
  const Tokenizer& tokenizer = harmony_->tokenizer();
  placed_.clear();
  ++num_pushed_;
  return tokenizer.is_special(id) ? push_special(id) : push_text(tokenizer.token_bytes(id));
}

std::string HarmonyParser::finish() {
  placed_.clear();
  return close(MessageEnd::cut);
}

std::string HarmonyParser::push_special(std::int32_t id) {
  const Harmony::Specials& specials = harmony_->specials();
  if (id == specials.start) {
    if (state_ == State::content) current().malformed = true;
    std::string rest = close(MessageEnd::cut);
    begin_header(std::nullopt);
    return rest;
  }
  if (id == specials.end) return close(MessageEnd::end);
  if (id == specials.done) return close(MessageEnd::done);
  if (id == specials.call) return close(MessageEnd::call);
  if (id == specials.end_of_text) return close(MessageEnd::cut);
  if (state_ == State::between && (id == specials.channel || id == specials.message)) {
    begin_header(Role::assistant);
    header_.odd = true;
  }
  if (state_ == State::header) return push_header_special(id);
  if (state_ == State::between) open_without_header();
  current().malformed = true;
  return push_text(harmony_->tokenizer().token_bytes(id));
}

std::string HarmonyParser::push_header_special(std::int32_t id) {
  const Harmony::Specials& specials = harmony_->specials();
  if (id == specials.message) return open_message();
  header_.text += harmony_->tokenizer().token_bytes(id);
  if (id == specials.channel && !header_.channel && !header_.constraint) {
    header_.channel.emplace();
  } else if (id == specials.constrain && !header_.constraint) {
    header_.constraint.emplace();
    header_.tokens.push_back({num_pushed_ - 1, HeaderPart::constraint, kConstrainText.size()});
  } else {
    header_.odd = true;
  }
  return "";
}

std::string HarmonyParser::push_text(std::string_view bytes) {
  if (state_ == State::header) return push_header_text(bytes);
  if (bytes.empty()) return "";
  if (state_ == State::between) open_without_header();
  placed_.push_back({.token = num_pushed_ - 1, .bytes = bytes.size()});
  return add_content(bytes);
}

std::string HarmonyParser::push_header_text(std::string_view bytes) {
  const HeaderPart where = header_.constraint ? HeaderPart::constraint
                           : header_.channel  ? HeaderPart::channel
                                              : HeaderPart::author;
  std::string& part = header_.constraint ? *header_.constraint
                      : header_.channel  ? *header_.channel
                                         : header_.author;
  part += bytes;
  header_.text += bytes;
  header_.tokens.push_back({num_pushed_ - 1, where, bytes.size()});
  const bool is_endless = header_.text.size() > kMaxTurnHeaderBytes;
  const bool is_text =
      where == HeaderPart::author && header_.role && !may_be_header(header_.author, *header_.role);
  if (is_endless || is_text || bytes.find('\n') != std::string_view::npos) return give_up_header();
  return "";
}

std::string HarmonyParser::add_content(std::string_view bytes) {
  std::string text = holder_.push(bytes);
  current().content += text;
  return text;
}

void HarmonyParser::begin_header(std::optional<Role> role) {
  header_ = {.role = role};
  state_ = State::header;
}

void HarmonyParser::open_without_header() {
  messages_.push_back({.header = {.role = Role::assistant}, .malformed = true});
  state_ = State::content;
}

std::string HarmonyParser::open_message() {
  ParsedMessage message{.header_text = lossy(header_.text)};
  MessageHeader& header = message.header;
  std::string rest = lossy(header_.author);
  bool sound = !header_.odd;
  if (header_.role) {
    header.role = *header_.role;
    std::string after = rest;
    if (take_word(after) == name_of(header.role)) rest = after;
  } else {
    const std::string word = take_word(rest);
    take_author(word, header);
    sound = sound && !word.empty();
  }
  if (header_.channel) {
    std::string behind = lossy(*header_.channel);
    header.channel = take_word(behind);
    rest += behind;
    sound = sound && !header.channel.empty();
  }
  std::optional<std::string> constraint;
  if (header_.constraint) constraint = trim(lossy(*header_.constraint));
  const bool tool_answers = header.role != Role::tool || !split_words(rest).empty();
  if (sound && tool_answers && read_rest(split_words(rest), constraint, header)) {
    messages_.push_back(std::move(message));
    state_ = State::content;
    return "";
  }
  std::string content = give_up_header();
  const std::string held = holder_.finish();
  current().content += held;
  return content + held;
}

std::string HarmonyParser::give_up_header() {
  ParsedMessage message{.header = {.role = header_.role.value_or(Role::assistant)},
                        .header_text = lossy(header_.text),
                        .malformed = true};
  std::string bytes = header_.author;
  if (!header_.role) {
    std::string after = bytes;
    if (const auto role = role_named(take_word(after))) {
      message.header.role = *role;
      bytes = after;
    }
  }
  const std::size_t skipped_author = header_.author.size() - bytes.size();
  std::size_t skipped_channel = 0;
  if (header_.channel) {
    std::string behind = *header_.channel;
    message.header.channel = lossy(take_word(behind));
    skipped_channel = header_.channel->size() - behind.size();
    bytes += behind;
  }
  if (header_.constraint) bytes += std::string(kConstrainText) + *header_.constraint;
  place_header(skipped_author, skipped_channel);
  messages_.push_back(std::move(message));
  state_ = State::content;
  return add_content(bytes);
}

void HarmonyParser::place_header(std::size_t skipped_author, std::size_t skipped_channel) {
  std::size_t skipped[] = {skipped_author, skipped_channel, 0};  // by part
  for (const HeaderToken& one : header_.tokens) {
    std::size_t& left = skipped[static_cast<std::size_t>(one.part)];
    const std::size_t cut = std::min(left, one.bytes);
    left -= cut;
    if (cut < one.bytes) placed_.push_back({.token = one.token, .bytes = one.bytes - cut});
  }
}

std::string HarmonyParser::close(MessageEnd end) {
  std::string text;
  if (state_ == State::header && !header_.text.empty()) text = give_up_header();
  if (state_ == State::content) {
    const std::string rest = holder_.finish();
    current().content += rest;
    current().end = end;
    text += rest;
  }
  state_ = State::between;
  return text;
}

}  // namespace gauntlet::model::inline harmony
