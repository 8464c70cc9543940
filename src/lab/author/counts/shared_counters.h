// Counters that several threads add to, which know how often they do.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

#include "lab/author/counted.h"

namespace gauntlet::lab::inline author::inline counts {

/// Over words of an output. Every addition is an atomic one.
class SharedCounters {
 public:
  explicit SharedCounters(std::uint32_t* words) : words_(words) {}

  /// One thread's way to the counters. What it added is counted when it goes, so that counting
  /// takes no shared word of its own per addition.
  class Adder {
   public:
    explicit Adder(SharedCounters& shared) : shared_(shared) {}
    ~Adder() { shared_.additions_.fetch_add(additions_, std::memory_order_relaxed); }
    Adder(const Adder&) = delete;
    Adder& operator=(const Adder&) = delete;

    void add(std::int64_t word, std::uint32_t number) {
      std::atomic_ref(shared_.words_[word]).fetch_add(number, std::memory_order_relaxed);
      ++additions_;
    }

   private:
    SharedCounters& shared_;
    std::uint64_t additions_ = 0;
  };

 private:
  friend Count atomic_additions(const std::shared_ptr<SharedCounters>& counters);

  std::uint32_t* words_;
  alignas(64) std::atomic<std::uint64_t> additions_ = 0;
};

/// "atomic_additions": how many a run makes.
Count atomic_additions(const std::shared_ptr<SharedCounters>& counters);

}  // namespace gauntlet::lab::inline author::inline counts
