// Where a side keeps data of a run: buffers of one size, of which the store counts those in use.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "lab/author/counted.h"

namespace gauntlet::lab::inline author::inline counts {

/// One thread's. Buffers that came back are given out again before new ones are made.
class BufferStore {
 public:
  explicit BufferStore(std::int64_t floats) : floats_(static_cast<std::size_t>(floats)) {}

  /// A buffer in use, which goes back when it ends. The store outlives it.
  class Buffer {
   public:
    Buffer(Buffer&& other) noexcept = default;
    Buffer& operator=(Buffer&& other) = delete;
    ~Buffer() {
      if (memory_) store_->give_back(std::move(memory_));
    }
    std::vector<float>& operator*() const { return *memory_; }
    std::vector<float>* operator->() const { return memory_.get(); }

   private:
    friend class BufferStore;
    using Memory = std::unique_ptr<std::vector<float>>;
    Buffer(BufferStore* store, Memory memory) : store_(store), memory_(std::move(memory)) {}

    BufferStore* store_;
    Memory memory_;
  };

  Buffer take();

 private:
  friend Count most_held_kib(const std::shared_ptr<BufferStore>& store);

  void give_back(std::unique_ptr<std::vector<float>> memory);
  /// KiB at most in use since this was last asked.
  double take_most_kib();

  std::size_t floats_;
  std::size_t in_use_ = 0, most_ = 0;
  std::vector<std::unique_ptr<std::vector<float>>> free_;
};

/// "most_held_kib": what of the store a run has in use at most.
Count most_held_kib(const std::shared_ptr<BufferStore>& store);

}  // namespace gauntlet::lab::inline author::inline counts
