// Does the lab judge by a percentile, of what requests waited while they were timed?
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace gauntlet::doubles::queue_tail {

struct Params {
  const std::int32_t* requests;  // [count, kRequestValues]
  const std::int32_t* table;     // [kTableValues]
  std::int32_t* answers;         // [count]
  std::int32_t* scans;           // [count / kScanEvery]
  std::int64_t count;
};

inline constexpr std::int64_t kRequestValues = 64;
inline constexpr std::int64_t kTableValues = 1 << 14;
inline constexpr std::int64_t kScanEvery = 20;  // requests

inline std::int32_t sum_of(const std::int32_t* values, std::int64_t count) {
  std::int32_t sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += values[i];
  return sum;
}

/// Microseconds of each request since somebody last asked.
class Waits {
 public:
  template <class F>
  void note(F request) {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    request();
    waited_->push_back(std::chrono::duration<float, std::micro>(Clock::now() - begin).count());
  }
  std::map<std::string, std::vector<float>> take() const {
    return {{"request_us", std::exchange(*waited_, {})}};
  }

 private:
  std::shared_ptr<std::vector<float>> waited_ = std::make_shared<std::vector<float>>();
};

}  // namespace gauntlet::doubles::queue_tail
