// A model in the layout of the CUDA kernels, in one allocation on the device.
#pragma once
#include <cuda_runtime_api.h>
#include <vector_types.h>

#include <functional>
#include <variant>
#include <vector>

#include "core/cuda/memory.h"
#include "engine/options.h"
#include "kernels/cuda/product/fragments.h"
#include "kernels/cuda/product/plain_matrix.h"
#include "model/slice.h"

struct __nv_bfloat16;

namespace gauntlet::engine::cuda {

/// In the layout of the plan. Of experts: the first one's, the others follow.
struct DeviceMatrix {
  std::variant<kernels::cuda::FragmentMatrix, kernels::cuda::PlainMatrix> layout;

  std::int64_t rows() const {
    return std::visit([](const auto& matrix) { return matrix.rows; }, layout);
  }
  std::int64_t bytes() const;
};

struct DeviceLayer {
  const float* attention_norm = nullptr;
  DeviceMatrix qkv;  // all queries, then keys, then values
  const float* qkv_bias = nullptr;
  DeviceMatrix o;
  const float* o_bias = nullptr;
  const float* sinks = nullptr;
  const float* mlp_norm = nullptr;
  const __nv_bfloat16* router = nullptr;  // [experts, hidden]
  const float* router_bias = nullptr;
  DeviceMatrix gate_up;                 // rows in paired order where layers are fused
  const float* gate_up_bias = nullptr;  // [experts, rows in the same order]
  DeviceMatrix down;
  const float* down_bias = nullptr;
};

struct DeviceModel {
  model::ModelConfig config;
  model::Range experts;  // those of a layer that it holds
  DeviceMemory memory;
  const __nv_bfloat16* embedding = nullptr;  // [vocab, hidden]
  std::vector<DeviceLayer> layers;
  const float* final_norm = nullptr;
  DeviceMatrix lm_head;
  const float2* rope = nullptr;  // [max_positions, head_dim / 2] {cos, sin}
};

/// Bytes of the model on the device, without loading it.
std::int64_t device_model_bytes(const model::ModelWeights& weights, const CudaPlan& plan);

/// Uploads and shuffles; random weights are made on the device. Reading a file, copying and
/// shuffling overlap.
DeviceModel load_device_model(const model::ModelWeights& weights, const CudaPlan& plan,
                              const std::function<void(double)>& progress);

}  // namespace gauntlet::engine::cuda
