#include "model/packed_experts.h"

#include <fmt/format.h>

#include "model/mxfp4.h"

namespace gauntlet::model {
namespace {

enum class Interleave { gate, up };

/// One matrix [experts * rows, cols] over the two tensors, or an empty one and an error.
Matrix bind_mxfp4(TensorBinder& bind, const std::string& blocks_name,
                  const std::string& scales_name, const std::vector<std::int64_t>& shape) {
  const std::int64_t experts = shape[0], rows = shape[1], cols = shape[2];
  const std::int64_t groups = cols / kMxfp4Block;
  const Tensor* blocks = bind.tensor(blocks_name, {experts, rows, groups, kMxfp4NibbleBytes});
  const Tensor* scales = bind.tensor(scales_name, {experts, rows, groups});
  if (!blocks || !scales) return {};
  if (cols % kMxfp4Block != 0) {
    bind.refuse(*blocks, fmt::format("has rows of {}, not a multiple of 32", cols));
    return {};
  }
  for (const Tensor* tensor : {blocks, scales}) {
    if (tensor->type != TensorType::u8) {
      bind.refuse(*tensor, fmt::format("has type {} instead of U8", tensor->type_name));
      return {};
    }
  }
  return {.type = WeightType::mxfp4,
          .rows = experts * rows,
          .cols = cols,
          .data = blocks->data,
          .row_stride_bytes = groups * kMxfp4NibbleBytes,
          .order = Mxfp4Order::neighbours,
          .scales = scales->data,
          .scale_row_stride_bytes = groups};
}

/// Every second row, from the first or the second on.
Matrix every_second_row(const Matrix& matrix, Interleave which) {
  Matrix view = rows_of(matrix, which == Interleave::up ? 1 : 0, matrix.rows - 1);
  view.rows = matrix.rows / 2;
  view.row_stride_bytes *= 2;
  view.scale_row_stride_bytes *= 2;
  return view;
}

Vector part_of(const Vector& all, std::int64_t first, std::int64_t count, std::int64_t step) {
  Vector values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    values[static_cast<std::size_t>(i)] = all[static_cast<std::size_t>(first + i * step)];
  }
  return values;
}

}  // namespace

std::vector<ExpertWeights> bind_packed_experts(const ModelConfig& config,
                                               const PackedExpertNames& names, TensorBinder& bind) {
  const std::int64_t count = config.num_experts;
  const std::int64_t hidden = config.hidden, intermediate = config.intermediate;
  const Matrix gate_up = bind_mxfp4(bind, names.gate_up_blocks, names.gate_up_scales,
                                    {count, 2 * intermediate, hidden});
  const Matrix down =
      bind_mxfp4(bind, names.down_blocks, names.down_scales, {count, hidden, intermediate});
  const Vector gate_up_bias = bind.vector(names.gate_up_bias, {count, 2 * intermediate});
  const Vector down_bias = bind.vector(names.down_bias, {count, hidden});
  if (bind.failed()) return {};

  std::vector<ExpertWeights> experts;
  for (std::int64_t e = 0; e < count; ++e) {
    const Matrix own = rows_of(gate_up, e * 2 * intermediate, 2 * intermediate);
    experts.push_back({.gate = every_second_row(own, Interleave::gate),
                       .up = every_second_row(own, Interleave::up),
                       .down = rows_of(down, e * hidden, hidden),
                       .gate_bias = part_of(gate_up_bias, e * 2 * intermediate, intermediate, 2),
                       .up_bias = part_of(gate_up_bias, e * 2 * intermediate + 1, intermediate, 2),
                       .down_bias = part_of(down_bias, e * hidden, hidden, 1)});
  }
  return experts;
}

}  // namespace gauntlet::model
