// Endpoints for tests of the sockets.
#pragma once
#include <atomic>
#include <memory>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <utility>

#include "server/http.h"

namespace gauntlet::server {

/// Says what was asked; at /hang, a stream that begins and never goes on; at /never, a reply that
/// does not begin; at /block, what was asked once it is let go; at /count, a stream of numbers
/// whose next one is always ready.
class FakeHandler final : public Handler {
 public:
  std::shared_ptr<Reply> handle(const HttpRequest& request) override {
    if (request.target == "/hang") return std::make_shared<Hanging>(num_abandoned, Begins::once);
    if (request.target == "/never") return std::make_shared<Hanging>(num_abandoned, Begins::never);
    if (request.target == "/count") return std::make_shared<Counting>();
    if (request.target == "/block") {
      blocks.release();
      let_go.acquire();
    }
    if (request.target == "/throw") throw std::runtime_error("a fault");
    return make_reply({}, request.method + " " + request.target + " " + request.body);
  }
  std::atomic<int> num_abandoned{0};
  std::counting_semaphore<> blocks{0};  // given by each that waits to be let go
  std::binary_semaphore let_go{0};

 private:
  class Counting final : public Reply {
   public:
    void on_ready(std::function<void()>) override {}
    std::optional<Piece> take() override {
      Piece piece{.body = "data: " + std::to_string(++count_) + "\n\n"};
      if (count_ == 1) piece.head = HttpHead{.content_type = "text/event-stream"};
      piece.is_last = count_ == 5;
      return piece;
    }
    void abandon() override {}

   private:
    int count_ = 0;
  };
  enum class Begins { once, never };
  class Hanging final : public Reply {
   public:
    Hanging(std::atomic<int>& num_abandoned, Begins begins)
        : num_abandoned_(num_abandoned), begins_(begins) {}
    void on_ready(std::function<void()>) override {}
    std::optional<Piece> take() override {
      if (std::exchange(begins_, Begins::never) == Begins::never) return std::nullopt;
      return Piece{.head = HttpHead{.content_type = "text/event-stream"}, .body = "data: 1\n\n"};
    }
    void abandon() override { ++num_abandoned_; }

   private:
    std::atomic<int>& num_abandoned_;
    Begins begins_;
  };
};

}  // namespace gauntlet::server
