// All experts of a layer in a few tensors, gate and up interleaved: rows 0, 2, ... are gate's.
#pragma once
#include <string>
#include <vector>

#include "model/tensor.h"

namespace gauntlet::model {

/// MXFP4: blocks [experts, rows, cols / 32, 16] and scales [experts, rows, cols / 32].
struct Mxfp4ExpertNames {
  std::string gate_up_blocks, gate_up_scales;  // rows: 2 * intermediate
  std::string gate_up_bias;                    // [experts, 2 * intermediate]
  std::string down_blocks, down_scales;        // rows: hidden
  std::string down_bias;                       // [experts, hidden]
};
std::vector<ExpertWeights> bind_mxfp4_experts(const ModelConfig& config,
                                              const Mxfp4ExpertNames& names, TensorBinder& bind);

/// Plain elements, inputs before outputs.
struct TransposedExpertNames {
  std::string gate_up;       // [experts, hidden, 2 * intermediate]
  std::string gate_up_bias;  // [experts, 2 * intermediate]
  std::string down;          // [experts, intermediate, hidden]
  std::string down_bias;     // [experts, hidden]
};
std::vector<ExpertWeights> bind_transposed_experts(const ModelConfig& config,
                                                   const TransposedExpertNames& names,
                                                   TensorBinder& bind);

}  // namespace gauntlet::model
