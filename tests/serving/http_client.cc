#include "tests/serving/http_client.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <nlohmann/json.hpp>

namespace gauntlet::tests {
namespace {

constexpr std::string_view kLine = "\r\n";
constexpr int kPatience_s = 600;  // longer than a starved machine makes anybody wait

template <class T>
bool read_number(std::string_view text, T& value, int base) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return failed == std::errc() && end == text.data() + text.size() && !text.empty();
}

}  // namespace

std::string Answer::header(std::string_view name) const {
  const std::size_t at = head_.find("\r\n" + std::string(name) + ": ");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + name.size() + 4;
  return head_.substr(begin, head_.find("\r\n", begin) - begin);
}

bool Answer::read_head(std::string_view head) {
  head_ = head;
  std::ranges::transform(head_, head_.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (!head_.starts_with("http/1.1 ") || !read_number(head_.substr(9, 3), status_, 10)) {
    return false;
  }
  if (status_ == 100) {
    head_.clear();
    return true;
  }
  if (header("transfer-encoding") == "chunked") {
    stage_ = Stage::chunk_size;
    return true;
  }
  stage_ = Stage::sized_body;
  return read_number(std::string_view(header("content-length")), left_, 10);
}

/// One step; false when more bytes are needed, or what came is malformed (and status_ is -1 then).
bool Answer::advance() {
  const auto malformed = [&] {
    status_ = -1;
    return false;
  };
  const auto take = [&](std::size_t count) {
    std::string taken = unread_.substr(0, count);
    unread_.erase(0, count);
    return taken;
  };
  const std::size_t line = unread_.find(kLine);
  switch (stage_) {
    case Stage::head: {
      const std::size_t end = unread_.find("\r\n\r\n");
      if (end == std::string::npos) return false;
      return read_head(take(end + 4)) || malformed();
    }
    case Stage::sized_body:
    case Stage::chunk: {
      const std::string part = take(std::min(left_, unread_.size()));
      left_ -= part.size();
      body_ += part;
      if (left_ > 0) return false;
      stage_ = stage_ == Stage::chunk ? Stage::chunk_end : Stage::done;
      return true;
    }
    case Stage::chunk_size:
      if (line == std::string::npos) return false;
      if (!read_number(std::string_view(unread_).substr(0, line), left_, 16)) return malformed();
      take(line + kLine.size());
      stage_ = left_ > 0 ? Stage::chunk : Stage::last_line;
      return true;
    case Stage::chunk_end:
    case Stage::last_line:
      if (unread_.size() < kLine.size()) return false;
      if (line != 0) return malformed();
      take(kLine.size());
      stage_ = stage_ == Stage::last_line ? Stage::done : Stage::chunk_size;
      return true;
    case Stage::done:
      return false;
  }
  return false;
}

bool Answer::feed(std::string_view bytes) {
  unread_ += bytes;
  while (advance()) {
  }
  return status_ >= 0;
}

std::optional<StreamedTokens> read_stream(const std::string& events) {
  constexpr std::string_view kData = "data: ";
  constexpr std::string_view kEnd = "\n\n";
  StreamedTokens tokens;
  std::string_view left = events;
  bool is_done = false;
  while (!left.empty()) {
    const std::size_t end = left.find(kEnd);
    if (is_done || end == std::string_view::npos) return std::nullopt;
    if (left.starts_with(":")) {  // a comment, by which a server sees whether anybody reads
      left.remove_prefix(end + kEnd.size());
      continue;
    }
    if (!left.starts_with(kData)) return std::nullopt;
    const std::string_view data = left.substr(kData.size(), end - kData.size());
    left.remove_prefix(end + kEnd.size());
    if (data == "[DONE]") {
      is_done = true;
      continue;
    }
    const auto json = nlohmann::json::parse(data, nullptr, false);
    if (json.is_discarded() || json.contains("error")) return std::nullopt;
    for (const auto& choice : json.at("choices")) {
      if (choice.contains("text")) tokens.text += choice.at("text").get<std::string>();
      if (choice.at("finish_reason").is_string()) tokens.finish_reason = choice["finish_reason"];
    }
    if (json.contains("usage") && json["usage"].is_object()) {
      tokens.completion_tokens = json["usage"].at("completion_tokens").get<std::int64_t>();
    }
  }
  return is_done ? std::optional(tokens) : std::nullopt;
}

std::string http_request(const std::string& method, const std::string& path,
                         const std::string& body, const std::string& headers) {
  std::string text = method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers;
  if (method == "POST") {
    text +=
        "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  }
  return text + "\r\n" + body;
}

Socket::Socket(std::uint16_t port) : handle_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const timeval limit{.tv_sec = kPatience_s, .tv_usec = 0};
  ::setsockopt(handle_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  ::setsockopt(handle_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(handle_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    ::close(handle_);
    handle_ = -1;
  }
}

Socket::~Socket() {
  if (handle_ >= 0) ::close(handle_);
}

bool Socket::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(handle_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

std::string Socket::receive(std::size_t most) {
  std::string bytes(most, '\0');
  const ssize_t count = ::recv(handle_, bytes.data(), bytes.size(), 0);
  bytes.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return bytes;
}

std::optional<Answer> Socket::read_answer(std::size_t bytes_at_once) {
  Answer answer;
  if (!answer.feed(std::exchange(unread_, {}))) return std::nullopt;
  while (!answer.is_done()) {
    const std::string bytes = receive(bytes_at_once);
    if (bytes.empty() || !answer.feed(bytes)) return std::nullopt;
  }
  unread_ = answer.rest();
  return answer;
}

void Socket::end_sending() { ::shutdown(handle_, SHUT_WR); }

void Socket::reset() {
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(handle_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  ::close(handle_);
  handle_ = -1;
}

std::optional<Answer> ask(std::uint16_t port, const std::string& method, const std::string& path,
                          const std::string& body) {
  Socket socket(port);
  if (!socket.is_open() || !socket.send(http_request(method, path, body, "Connection: close\r\n")))
    return std::nullopt;
  return socket.read_answer();
}

}  // namespace gauntlet::tests
