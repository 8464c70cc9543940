// What compiling a grammar may cost. Steps are counted, not timed, so that a schema ends alike on
// every machine and at any load.
#pragma once
#include <cstddef>
#include <cstdint>

namespace gauntlet::engine::grammar {

/// Thrown by Work; becomes the error of whoever compiles.
struct OutOfWork {};

/// One step takes 4 to 8 ns: an edge looked at, a few bytes of JSON copied.
class Work {
 public:
  static constexpr std::int64_t kMaxSteps = 6'000'000;

  explicit Work(std::int64_t max_steps = kMaxSteps) : max_(max_steps) {}

  void spend(std::size_t steps) {
    used_ += static_cast<std::int64_t>(steps);
    if (used_ > max_) throw OutOfWork{};
  }
  std::int64_t used() const { return used_; }
  std::int64_t left() const { return max_ - used_; }

 private:
  std::int64_t max_;
  std::int64_t used_ = 0;
};

}  // namespace gauntlet::engine::grammar
