// What the bodies of all requests under way may take together: a limit per request alone would let
// many clients hold many times that.
#pragma once
#include <atomic>
#include <cstdint>
#include <utility>

namespace gauntlet::server {

class BodyBudget {
 public:
  explicit BodyBudget(std::uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  /// One body's part of the budget, given back once it is parsed.
  class Share {
   public:
    explicit Share(BodyBudget& budget) : budget_(budget) {}
    ~Share() { release(); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    /// False, with nothing changed, when all bodies together would take too much.
    [[nodiscard]] bool grow_to(std::uint64_t bytes) {
      if (bytes <= bytes_) return true;
      const std::uint64_t more = bytes - bytes_;
      std::uint64_t used = budget_.used_bytes_.load();
      do {
        if (more > budget_.limit_bytes_ - used) return false;
      } while (!budget_.used_bytes_.compare_exchange_weak(used, used + more));
      bytes_ = bytes;
      return true;
    }

    void release() { budget_.used_bytes_.fetch_sub(std::exchange(bytes_, 0)); }

   private:
    BodyBudget& budget_;
    std::uint64_t bytes_ = 0;
  };

 private:
  const std::uint64_t limit_bytes_;
  std::atomic<std::uint64_t> used_bytes_{0};
};

}  // namespace gauntlet::server
