#include "lab/author/counts/buffer_store.h"

#include <algorithm>
#include <utility>

#include "lab/author/lab_counts.h"

namespace gauntlet::lab::inline author::inline counts {

BufferStore::Buffer BufferStore::take() {
  most_ = std::max(most_, ++in_use_);
  if (free_.empty()) return {this, std::make_unique<std::vector<float>>(floats_)};
  Buffer buffer(this, std::move(free_.back()));
  free_.pop_back();
  return buffer;
}

void BufferStore::give_back(std::unique_ptr<std::vector<float>> memory) {
  --in_use_;
  free_.push_back(std::move(memory));
}

double BufferStore::take_most_kib() {
  const std::size_t most = std::exchange(most_, in_use_);
  return static_cast<double>(most * floats_ * sizeof(float)) / 1024;
}

Count most_held_kib(const std::shared_ptr<BufferStore>& store) {
  // Asked before and after a run, so that the sum grows by what was held at most in between.
  return LabCounts::make("most_held_kib", [store, sum = std::make_shared<double>(0)] {
    return *sum += store->take_most_kib();
  });
}

}  // namespace gauntlet::lab::inline author::inline counts
