// A client that trusts nothing: answers are read byte by byte as they come, and what is no HTTP
// shows.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gauntlet::tests {

/// One answer, fed as its bytes come in.
class Answer {
 public:
  /// False when this is no HTTP. What comes after the end stays in rest().
  bool feed(std::string_view bytes);
  bool is_done() const { return stage_ == Stage::done; }
  int status() const { return status_; }
  const std::string& body() const { return body_; }
  const std::string& rest() const { return unread_; }
  bool has_begun() const { return stage_ != Stage::head || !unread_.empty(); }
  /// In small letters, as it was sent; empty where it was not.
  std::string header(std::string_view name) const;

 private:
  enum class Stage { head, sized_body, chunk_size, chunk, chunk_end, last_line, done };
  bool advance();
  bool read_head(std::string_view head);

  Stage stage_ = Stage::head;
  std::string unread_;
  std::string head_;
  std::string body_;
  std::size_t left_ = 0;  // of the body or the chunk
  int status_ = 0;
};

/// The texts and the count of a stream of completions; nothing when it is cut off or malformed.
struct StreamedTokens {
  std::string text;
  std::int64_t completion_tokens = 0;
  std::string finish_reason;
};
std::optional<StreamedTokens> read_stream(const std::string& events);

std::string http_request(const std::string& method, const std::string& path,
                         const std::string& body = "", const std::string& headers = "");

/// A connection to the loopback that blocks, for at most ten minutes.
class Socket {
 public:
  explicit Socket(std::uint16_t port);
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  bool is_open() const { return handle_ >= 0; }
  int handle() const { return handle_; }
  /// False when the other end does not take it all.
  bool send(std::string_view bytes);
  /// At most this many bytes; empty when the other end closed, failed or was silent for too long.
  std::string receive(std::size_t most = 64 << 10);
  /// Nothing when the connection ended before the answer did, or it is no HTTP.
  std::optional<Answer> read_answer(std::size_t bytes_at_once = 64 << 10);
  void end_sending();
  /// Closes so that the other end sees a reset.
  void reset();

 private:
  int handle_ = -1;
  std::string unread_;
};

/// One request over a connection of its own.
std::optional<Answer> ask(std::uint16_t port, const std::string& method, const std::string& path,
                          const std::string& body = "");

}  // namespace gauntlet::tests
