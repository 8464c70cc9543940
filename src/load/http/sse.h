// Server-sent events out of bytes that arrive in any pieces, by the rules of the HTML standard.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace gauntlet::load::inline http {

class SseParser {
 public:
  /// Given the data of each event, which lives as long as the call; events without data are none.
  using Sink = std::function<void(std::string_view data)>;

  explicit SseParser(Sink sink) : sink_(std::move(sink)) {}

  /// False once an event has grown beyond a MiB: this is no stream of tokens.
  bool feed(std::string_view bytes);

 private:
  void line(std::string_view text);
  void dispatch();

  Sink sink_;
  std::string partial_;  // of a line whose end has not come
  std::string data_;     // of the event so far
  bool has_data_ = false;
  bool after_return_ = false;  // a line feed that comes now belongs to the line before
  bool begun_ = false;
};

}  // namespace gauntlet::load::inline http
