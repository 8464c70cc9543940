// What the endpoints and the sockets know of each other: a request comes in whole, and its reply
// goes out in pieces as they become ready.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/http/api_error.h"

namespace gauntlet::server::inline http {

struct HttpRequest {
  std::string id;      // the client's x-request-id, or one made here
  std::string method;  // "GET"
  std::string target;  // "/v1/models?x=y", always a path
  std::string authorization;
  std::string body;
};

struct HttpHead {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
};

/// The first piece of a reply has the head.
struct Piece {
  std::optional<HttpHead> head;
  std::string body;
  bool is_last = false;
};

/// What a log line says of a reply that made tokens.
struct ReplySummary {
  std::int64_t prompt_tokens = 0;
  std::int64_t output_tokens = 0;
  std::optional<double> first_token_ms;
  std::string finish;  // "stop", "length", ..., of the last choice that ended
};

class Reply {
 public:
  virtual ~Reply() = default;
  /// `wake` is called, from any thread and quickly, when a piece may have become ready; never after
  /// abandon() has returned.
  virtual void on_ready(std::function<void()> wake) = 0;
  /// Nothing when none is ready. Not after the last.
  virtual std::optional<Piece> take() = 0;
  /// Nobody reads any more: also the last call of a reply that was read to its end.
  virtual void abandon() = 0;
  /// From where it is read, while the client's socket takes no bytes: a reply that grows
  /// meanwhile may give its reader up. Nobody is blamed for a time in which this server was busy.
  virtual void reader_is_blocked() {}
  virtual std::optional<ReplySummary> summary() const { return std::nullopt; }
};

/// A reply that is there already.
std::shared_ptr<Reply> make_reply(HttpHead head, std::string body);
std::shared_ptr<Reply> make_reply(const ApiError& error);
HttpHead head_of(const ApiError& error);

/// Called from several threads at once.
class Handler {
 public:
  virtual ~Handler() = default;
  /// Asked before a body is read, with all but that: who may not ask, or asks for what is not
  /// there, gets this reply instead. Null: the request is read and handled.
  virtual std::shared_ptr<Reply> refuse_early(const HttpRequest& /*head*/) { return nullptr; }
  virtual std::shared_ptr<Reply> handle(const HttpRequest& request) = 0;
};

/// Up to 128 letters, digits, dots, dashes and underscores: safe in a header and a log.
bool is_request_id(std::string_view id);

}  // namespace gauntlet::server::inline http
