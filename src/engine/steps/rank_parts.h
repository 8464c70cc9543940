// What a rank that holds a part of a model needs of the others beside sums: columns that they have
// computed, and rows between stages of a pipeline.
#pragma once
#include <cstdint>
#include <span>

#include "model/slice.h"

namespace gauntlet::engine::inline steps {

/// Columns that ranks have computed, each its own part.
enum class PartsOf {
  attended,       // of the heads
  attention_out,  // of o, where it is cut by outputs
  activated,      // of the intermediate width
  logits
};

/// Called in the same order on all ranks of a stage, by one thread while the others wait. What it
/// throws ends the step, and is thrown by Runner::finish().
class RankParts {
 public:
  virtual ~RankParts() = default;

  virtual const model::Slice& slice() const = 0;
  /// Outputs of o and down are divided and their inputs gathered: one rank's bits.
  virtual bool is_ordered() const = 0;
  virtual bool is_first_stage() const = 0;
  virtual bool is_last_stage() const = 0;

  /// Rows of the whole width, of which this rank has written its columns: the others' come in.
  virtual void gather(PartsOf of, float* rows, std::int64_t num_rows, std::int64_t stride) = 0;
  /// Outputs of all experts, of which this rank has written its experts' rows in its columns of
  /// down. Expert e has the rows from first_slot[e] on.
  virtual void gather_experts(float* rows, std::int64_t stride,
                              std::span<const std::int32_t> first_slot) = 0;

  /// The residual [num_rows, hidden] of the stage before, and to the stage behind.
  virtual void receive_rows(float* rows, std::int64_t num_rows) = 0;
  virtual void send_rows(const float* rows, std::int64_t num_rows) = 0;
};

}  // namespace gauntlet::engine::inline steps
