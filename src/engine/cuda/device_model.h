// A model in the layout of the CUDA kernels, in one allocation on the device.
#pragma once
#include <cuda_runtime_api.h>
#include <vector_types.h>

#include <functional>
#include <vector>

#include "core/cuda/memory.h"
#include "engine/options.h"
#include "kernels/cuda/fragments.h"
#include "model/weights.h"

struct __nv_bfloat16;

namespace gauntlet::engine {

struct DeviceLayer {
  const float* attention_norm = nullptr;
  kernels::cuda::FragmentMatrix qkv;  // all queries, then keys, then values
  const float* qkv_bias = nullptr;
  kernels::cuda::FragmentMatrix o;
  const float* o_bias = nullptr;
  const float* sinks = nullptr;
  const float* mlp_norm = nullptr;
  const __nv_bfloat16* router = nullptr;  // [experts, hidden]
  const float* router_bias = nullptr;
  kernels::cuda::FragmentMatrix gate_up;  // of the first expert; rows in paired order
  const float* gate_up_bias = nullptr;    // [experts, rows in the same order]
  kernels::cuda::FragmentMatrix down;
  const float* down_bias = nullptr;
};

struct DeviceModel {
  model::ModelConfig config;
  DeviceMemory memory;
  const __nv_bfloat16* embedding = nullptr;  // [vocab, hidden]
  std::vector<DeviceLayer> layers;
  const float* final_norm = nullptr;
  kernels::cuda::FragmentMatrix lm_head;
  const float2* rope = nullptr;  // [max_positions, head_dim / 2] {cos, sin}
};

/// Bytes of the model on the device, without loading it.
std::int64_t device_model_bytes(const model::ModelWeights& weights, const CudaPlan& plan);

/// Uploads and shuffles; random weights are made on the device. Reading a file, copying and
/// shuffling overlap.
DeviceModel load_device_model(const model::ModelWeights& weights, const CudaPlan& plan,
                              const std::function<void(double)>& progress);

}  // namespace gauntlet::engine
