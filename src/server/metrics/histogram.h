// A distribution that any thread adds to.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace gauntlet::server::inline metrics {

class Histogram {
 public:
  /// Upper bounds, rising; what is above all of them counts as infinite.
  explicit Histogram(std::vector<double> bounds);
  void observe(double value);

  const std::vector<double>& bounds() const { return bounds_; }
  /// One per bound and one above them, each on its own (not summed up).
  std::vector<std::int64_t> counts() const;
  double sum() const { return sum_.load(std::memory_order_relaxed); }

 private:
  const std::vector<double> bounds_;
  const std::unique_ptr<std::atomic<std::int64_t>[]> counts_;
  std::atomic<double> sum_{0};
};

}  // namespace gauntlet::server::inline metrics
