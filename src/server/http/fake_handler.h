// Endpoints for tests of the sockets.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <utility>

#include "server/http/http.h"

namespace gauntlet::server::inline http {

/// Says what was asked, and refuses /forbidden before its body; at /hang, a stream that begins and
/// never goes on; at /never, a reply that does not begin; at /block, what was asked once it is let
/// go; at /count, a stream of numbers whose next one is always ready, and at /parts the same as no
/// events; at /later, what was asked once it is answered.
class FakeHandler final : public Handler {
 public:
  std::shared_ptr<Reply> refuse_early(const HttpRequest& head) override {
    if (head.target != "/forbidden") return nullptr;
    return make_reply(ApiError{.status = 401, .message = "no"});
  }
  std::shared_ptr<Reply> handle(const HttpRequest& request) override {
    ++num_handled;
    if (request.target == "/later") {
      later = std::make_shared<Later>(num_abandoned);
      num_later.release();
      return later;
    }
    if (request.target == "/hang") return std::make_shared<Hanging>(num_abandoned, Begins::once);
    if (request.target == "/never") return std::make_shared<Hanging>(num_abandoned, Begins::never);
    if (request.target == "/count") return std::make_shared<Counting>("text/event-stream");
    if (request.target == "/parts") return std::make_shared<Counting>("application/json");
    if (request.target == "/block") {
      blocks.release();
      let_go.acquire();
    }
    if (request.target == "/throw") throw std::runtime_error("a fault");
    return make_reply({}, request.method + " " + request.target + " " + request.body);
  }
  /// A whole reply that a test ends.
  class Later final : public Reply {
   public:
    explicit Later(std::atomic<int>& num_abandoned) : num_abandoned_(num_abandoned) {}
    void answer() {
      const std::lock_guard lock(mutex_);
      is_answered_ = true;
      if (wake_) wake_();
    }
    void on_ready(std::function<void()> wake) override {
      const std::lock_guard lock(mutex_);
      wake_ = std::move(wake);
      if (is_answered_) wake_();
    }
    std::optional<Piece> take() override {
      const std::lock_guard lock(mutex_);
      if (!is_answered_) return std::nullopt;
      return Piece{.head = HttpHead{}, .body = "later", .is_last = true};
    }
    void abandon() override {
      const std::lock_guard lock(mutex_);
      wake_ = nullptr;
      ++num_abandoned_;
    }

   private:
    std::atomic<int>& num_abandoned_;
    std::mutex mutex_;
    std::function<void()> wake_;
    bool is_answered_ = false;
  };

  std::shared_ptr<Later> later;            // the last one
  std::counting_semaphore<> num_later{0};  // given by each
  std::atomic<int> num_handled{0};
  std::atomic<int> num_abandoned{0};
  std::counting_semaphore<> blocks{0};  // given by each that waits to be let go
  std::binary_semaphore let_go{0};

 private:
  class Counting final : public Reply {
   public:
    explicit Counting(const char* content_type) : content_type_(content_type) {}
    void on_ready(std::function<void()>) override {}
    std::optional<Piece> take() override {
      Piece piece{.body = "data: " + std::to_string(++count_) + "\n\n"};
      if (count_ == 1) piece.head = HttpHead{.content_type = content_type_};
      piece.is_last = count_ == 5;
      return piece;
    }
    void abandon() override {}

   private:
    const char* content_type_;
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

}  // namespace gauntlet::server::inline http
