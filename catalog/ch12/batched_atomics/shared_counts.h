// Counters that several threads add to, and how often they do.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

#include "catalog/ch12/batched_atomics/pair.h"
#include "lab/author/counted.h"

namespace gauntlet::ch12::batched_atomics {

class SharedCounts {
 public:
  explicit SharedCounts(std::uint32_t* counts) : counts_(counts) {}

  /// Before the pool is forked.
  void clear() {
    for (int expert = 0; expert < kExperts; ++expert) counts_[expert] = 0;
  }

  /// One thread's way to the counters. It knows how often it was used.
  class Adder {
   public:
    explicit Adder(SharedCounts& shared) : shared_(shared) {}
    ~Adder() { shared_.additions_.fetch_add(additions_, std::memory_order_relaxed); }
    Adder(const Adder&) = delete;
    Adder& operator=(const Adder&) = delete;

    void add(int expert, std::uint32_t number) {
      std::atomic_ref(shared_.counts_[expert]).fetch_add(number, std::memory_order_relaxed);
      ++additions_;
    }

   private:
    SharedCounts& shared_;
    std::uint64_t additions_ = 0;
  };

  std::uint64_t additions() const { return additions_.load(std::memory_order_relaxed); }

 private:
  std::uint32_t* counts_;  // [kExperts]
  alignas(64) std::atomic<std::uint64_t> additions_ = 0;
};

/// "atomic_additions": how many a run makes.
inline lab::Count atomic_additions(const std::shared_ptr<SharedCounts>& shared) {
  return {.name = "atomic_additions",
          .total = [shared] { return static_cast<double>(shared->additions()); },
          .per = {}};
}

}  // namespace gauntlet::ch12::batched_atomics
