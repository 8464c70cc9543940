#include "model/packed_experts.h"

#include <fmt/format.h>

#include "model/mxfp4.h"
#include "model/quantized.h"

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

/// For each expert a matrix [outputs, inputs] over its part [inputs, outputs] of the tensor.
std::vector<Matrix> bind_transposed(TensorBinder& bind, const std::string& name,
                                    const std::vector<std::int64_t>& shape) {
  const std::int64_t inputs = shape[1], outputs = shape[2];
  const Tensor* tensor = bind.tensor(name, shape);
  const auto type = tensor ? bind.weight_type(*tensor, outputs) : std::nullopt;
  if (!type) return {};
  if (is_block_type(*type)) {
    bind.refuse(*tensor, fmt::format("has type {}, which cannot be transposed", tensor->type_name));
    return {};
  }
  std::vector<Matrix> matrices;
  for (std::int64_t e = 0; e < shape[0]; ++e) {
    matrices.push_back({.type = *type,
                        .rows = outputs,
                        .cols = inputs,
                        .data = tensor->data + e * inputs * outputs * element_bytes(*type),
                        .row_stride_bytes = element_bytes(*type),
                        .col_stride_bytes = outputs * element_bytes(*type)});
  }
  return matrices;
}

struct Biases {
  Vector gate_up;  // [experts, 2 * intermediate]
  Vector down;     // [experts, hidden]
};

ExpertWeights unpack(const ModelConfig& config, std::int64_t expert, const Matrix& gate_up,
                     const Matrix& down, const Biases& biases) {
  const std::int64_t first = expert * 2 * config.intermediate;
  return {.gate = every_second_row(gate_up, Interleave::gate),
          .up = every_second_row(gate_up, Interleave::up),
          .down = down,
          .gate_bias = part_of(biases.gate_up, first, config.intermediate, 2),
          .up_bias = part_of(biases.gate_up, first + 1, config.intermediate, 2),
          .down_bias = part_of(biases.down, expert * config.hidden, config.hidden, 1)};
}

}  // namespace

std::vector<ExpertWeights> bind_mxfp4_experts(const ModelConfig& config,
                                              const Mxfp4ExpertNames& names, TensorBinder& bind) {
  const std::int64_t count = config.num_experts;
  const std::int64_t hidden = config.hidden, intermediate = config.intermediate;
  const Matrix gate_up = bind_mxfp4(bind, names.gate_up_blocks, names.gate_up_scales,
                                    {count, 2 * intermediate, hidden});
  const Matrix down =
      bind_mxfp4(bind, names.down_blocks, names.down_scales, {count, hidden, intermediate});
  const Biases biases{.gate_up = bind.vector(names.gate_up_bias, {count, 2 * intermediate}),
                      .down = bind.vector(names.down_bias, {count, hidden})};
  std::vector<ExpertWeights> experts;
  for (std::int64_t e = 0; e < count && !bind.failed(); ++e) {
    experts.push_back(unpack(config, e, rows_of(gate_up, e * 2 * intermediate, 2 * intermediate),
                             rows_of(down, e * hidden, hidden), biases));
  }
  return experts;
}

std::vector<ExpertWeights> bind_transposed_experts(const ModelConfig& config,
                                                   const TransposedExpertNames& names,
                                                   TensorBinder& bind) {
  const std::int64_t count = config.num_experts;
  const std::int64_t hidden = config.hidden, intermediate = config.intermediate;
  const auto gate_up = bind_transposed(bind, names.gate_up, {count, hidden, 2 * intermediate});
  const auto down = bind_transposed(bind, names.down, {count, intermediate, hidden});
  const Biases biases{.gate_up = bind.vector(names.gate_up_bias, {count, 2 * intermediate}),
                      .down = bind.vector(names.down_bias, {count, hidden})};
  std::vector<ExpertWeights> experts;
  for (std::size_t e = 0; !bind.failed() && e < gate_up.size(); ++e) {
    experts.push_back(unpack(config, static_cast<std::int64_t>(e), gate_up[e], down[e], biases));
  }
  return experts;
}

}  // namespace gauntlet::model
