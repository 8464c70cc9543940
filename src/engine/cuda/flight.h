// A step under way, and what it leaves on the host: choices, the experts' slots, and where asked
// for logits, normed rows and residuals.
#pragma once
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "core/cuda/memory.h"
#include "core/cuda/stream_place.h"
#include "engine/cuda/buffers.h"
#include "engine/cuda/host_buffer.h"
#include "engine/cuda/step_parts.h"
#include "engine/steps/step_data.h"
#include "kernels/cuda/sampling/sample.h"

namespace gauntlet::engine::cuda {

class Flight {
 public:
  Flight(const model::ModelConfig& config, const BufferSizes& sizes, int most_parts,
         HostMemory kind);

  void begin(StepData data, std::vector<StepPart> cut);
  /// Behind the launches of a part: enqueues the copies of what it left on the device.
  void bring(const Buffers& from, std::size_t part, cudaStream_t stream);
  /// Once the step is done.
  std::vector<RowResult> results() const;
  std::span<const float> residuals() const;
  /// They do where one launch has them all: another would write over them.
  bool residuals_stay() const {
    return step.residuals_stay && parts.size() == 1 && step.num_exported() > 0;
  }
  /// [layers, experts + 1] of a part.
  const std::int32_t* first_slot(std::size_t part) const {
    return reinterpret_cast<const std::int32_t*>(slots_[part].data());
  }

  StepData step;
  std::vector<StepPart> parts;
  std::vector<std::int32_t> places;  // of each row's choice
  StreamPlace done;

 private:
  /// Rows of the head's input or output that some of a step's rows ask for.
  struct HeadRows {
    std::vector<std::int32_t> rows;  // of the step
    std::optional<PinnedMemory> memory;
  };
  void bring_head_rows(HeadRows& into, const void* from, std::int64_t stride_bytes,
                       std::int64_t row_bytes, std::size_t part, bool (*is_wanted)(const StepRow&),
                       cudaStream_t stream);
  void bring_residuals(const Buffers& from, std::size_t part, cudaStream_t stream);
  std::int64_t slot_bytes() const {
    return config_.num_layers * (config_.num_experts + 1) *
           static_cast<std::int64_t>(sizeof(std::int32_t));
  }
  std::int64_t num_residuals() const {
    return sizes_.export_layers * step.num_exported() * config_.hidden;
  }

  const model::ModelConfig& config_;
  const BufferSizes& sizes_;
  HostBuffer choices_;            // RowChoice by place
  std::deque<HostBuffer> slots_;  // of each part: a copy of first_slot
  HeadRows logits_;
  HeadRows normed_;                        // bf16
  std::optional<PinnedMemory> residuals_;  // [export layers, exported tokens, hidden]
  std::int64_t residual_capacity_ = 0;     // numbers
};

}  // namespace gauntlet::engine::cuda
