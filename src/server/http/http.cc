#include "server/http/http.h"

#include <algorithm>

namespace gauntlet::server::inline http {
namespace {

class ReadyReply final : public Reply {
 public:
  explicit ReadyReply(Piece piece) : piece_(std::move(piece)) {}
  void on_ready(std::function<void()>) override {}
  std::optional<Piece> take() override { return std::exchange(piece_, std::nullopt); }
  void abandon() override {}

 private:
  std::optional<Piece> piece_;
};

}  // namespace

std::shared_ptr<Reply> make_reply(HttpHead head, std::string body) {
  return std::make_shared<ReadyReply>(
      Piece{.head = std::move(head), .body = std::move(body), .is_last = true});
}

HttpHead head_of(const ApiError& error) {
  HttpHead head{.status = error.status};
  if (error.retry_after_s > 0) {
    head.headers.emplace_back("Retry-After", std::to_string(error.retry_after_s));
  }
  if (error.status == 401) head.headers.emplace_back("WWW-Authenticate", "Bearer");
  return head;
}

std::shared_ptr<Reply> make_reply(const ApiError& error) {
  return make_reply(head_of(error), to_json(error));
}

bool is_request_id(std::string_view id) {
  return !id.empty() && id.size() <= 128 && std::ranges::all_of(id, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  });
}

}  // namespace gauntlet::server::inline http
