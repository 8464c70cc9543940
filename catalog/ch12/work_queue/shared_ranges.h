// A queue of items per worker, from whose ends others steal.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

namespace gauntlet::ch12::work_queue {

struct Range {
  std::uint32_t begin = 0, end = 0;
  bool empty() const { return begin == end; }
};

/// Items that nobody has taken yet, as a range per worker. Both ends of a range are in one word, so
/// that one compare-and-swap takes from either; a word says all about who owns what, so that a
/// value that comes back means the same again.
class SharedRanges {
 public:
  explicit SharedRanges(int workers) : ranges_(static_cast<std::size_t>(workers)) {}

  /// Splits [0, items) evenly. No worker is at it yet.
  void reset(std::int64_t items) {
    const auto workers = static_cast<std::int64_t>(ranges_.size());
    for (std::int64_t worker = 0; worker < workers; ++worker) {
      put(worker, {.begin = static_cast<std::uint32_t>(items * worker / workers),
                   .end = static_cast<std::uint32_t>(items * (worker + 1) / workers)});
    }
  }

  /// Up to `most` items from the front of the worker's own range, after stealing half of what
  /// another has left if it is empty. Nothing once all are.
  std::optional<Range> take(int worker, std::uint32_t most) {
    for (;;) {
      if (const Range front = take_front(worker, most); !front.empty()) return front;
      const Range stolen = steal(worker);
      if (stolen.empty()) return std::nullopt;
      put(worker, stolen);
    }
  }

 private:
  struct alignas(64) Slot {
    std::atomic<std::uint64_t> word = 0;
  };
  static std::uint64_t word_of(Range r) { return std::uint64_t{r.end} << 32 | r.begin; }
  static Range range_of(std::uint64_t word) {
    return {.begin = static_cast<std::uint32_t>(word),
            .end = static_cast<std::uint32_t>(word >> 32)};
  }

  // The words carry nothing but themselves: inputs are there before the pool is forked, and outputs
  // are read after it joined.
  void put(std::int64_t worker, Range range) {
    ranges_[static_cast<std::size_t>(worker)].word.store(word_of(range), std::memory_order_relaxed);
  }

  Range take_front(int worker, std::uint32_t most) {
    auto& word = ranges_[static_cast<std::size_t>(worker)].word;
    std::uint64_t seen = word.load(std::memory_order_relaxed);
    for (;;) {
      const Range left = range_of(seen);
      const std::uint32_t taken = std::min(most, left.end - left.begin);
      if (taken == 0) return {};
      const Range rest = {.begin = left.begin + taken, .end = left.end};
      if (word.compare_exchange_weak(seen, word_of(rest), std::memory_order_relaxed)) {
        return {.begin = left.begin, .end = rest.begin};
      }
    }
  }

  /// The later half of what the next worker that has anything has left.
  Range steal(int thief) {
    const auto workers = static_cast<int>(ranges_.size());
    for (int distance = 1; distance < workers; ++distance) {
      auto& word = ranges_[static_cast<std::size_t>((thief + distance) % workers)].word;
      std::uint64_t seen = word.load(std::memory_order_relaxed);
      for (;;) {
        const Range left = range_of(seen);
        if (left.empty()) break;
        const std::uint32_t middle = left.begin + (left.end - left.begin) / 2;
        if (word.compare_exchange_weak(seen, word_of({.begin = left.begin, .end = middle}),
                                       std::memory_order_relaxed)) {
          return {.begin = middle, .end = left.end};
        }
      }
    }
    return {};
  }

  std::vector<Slot> ranges_;
};

}  // namespace gauntlet::ch12::work_queue
