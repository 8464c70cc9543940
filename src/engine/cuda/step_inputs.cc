#include "engine/cuda/step_inputs.h"

#include <algorithm>

namespace gauntlet::engine::cuda {
namespace {

/// Hands out places one after the other.
class Places {
 public:
  explicit Places(std::uint8_t* base) : base_(base) {}

  template <class T>
  T* take(std::int64_t count) {
    constexpr std::int64_t kAlignment = 16;
    T* at = reinterpret_cast<T*>(base_ + bytes_);
    bytes_ +=
        (count * static_cast<std::int64_t>(sizeof(T)) + kAlignment - 1) / kAlignment * kAlignment;
    return at;
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::uint8_t* base_;
  std::int64_t bytes_ = 0;
};

StepPointers lay_out(const StepShape& shape, Places& places) {
  StepPointers at;
  at.real_tokens = places.take<std::int32_t>(1);
  at.ids = places.take<std::int32_t>(shape.tokens);
  at.first_token = places.take<std::int32_t>(shape.sequences + 1);
  at.context = places.take<std::int32_t>(shape.sequences);
  at.token_sequence = places.take<std::int32_t>(shape.tokens);
  for (std::int32_t*& table : at.tables) {
    table = places.take<std::int32_t>(std::int64_t{shape.sequences} * shape.table_stride);
  }
  at.logit_rows = places.take<std::int32_t>(shape.logit_rows);
  at.targets = places.take<std::int32_t>(shape.logit_rows);
  at.params = places.take<kernels::cuda::DrawParams>(shape.logit_rows);
  at.allowed = places.take<std::uint32_t>(std::int64_t{shape.logit_rows} * shape.mask_words);
  return at;
}

std::int64_t bytes_of(const StepShape& shape) {
  Places places(nullptr);
  lay_out(shape, places);
  return places.bytes();
}

StepPointers pointers(const StepShape& shape, std::uint8_t* base) {
  Places places(base);
  return lay_out(shape, places);
}

}  // namespace

StepInputs::StepInputs(std::span<const StepShape> largest, int num_staged, HostMemory host_memory)
    : capacity_bytes_(bytes_of(*std::max_element(
          largest.begin(), largest.end(),
          [](const auto& a, const auto& b) { return bytes_of(a) < bytes_of(b); }))),
      device_(capacity_bytes_) {
  for (int i = 0; i < num_staged; ++i) host_.emplace_back(capacity_bytes_, host_memory);
}

StepPointers StepInputs::on_host(const StepShape& shape, int staged) const {
  check(bytes_of(shape) <= capacity_bytes_, "a step is larger than its inputs were made for");
  return pointers(shape, host_[static_cast<std::size_t>(staged)].data());
}

StepPointers StepInputs::on_device(const StepShape& shape) const {
  return pointers(shape, device_.data());
}

void StepInputs::upload(const StepShape& shape, int staged, cudaStream_t stream) const {
  cuda_check(cudaMemcpyAsync(device_.data(), host_[static_cast<std::size_t>(staged)].data(),
                             static_cast<std::size_t>(bytes_of(shape)), cudaMemcpyHostToDevice,
                             stream));
}

}  // namespace gauntlet::engine::cuda
