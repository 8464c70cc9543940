// A model in the layout of the CPU kernels: one allocation on huge pages, each part written by the
// thread that will read it, so that on several NUMA nodes it lies where it is used.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/check.h"
#include "core/host_array.h"
#include "core/os/threads.h"
#include "engine/options.h"
#include "kernels/cpu/packed.h"
#include "model/weights.h"

namespace gauntlet::engine::cpu {

struct PackedExpert {
  kernels::cpu::PackedMatrix gate_up;  // per 32 of the intermediate width: 32 gates, then 32 ups
  kernels::cpu::PackedMatrix down;
  std::vector<float> gate_up_bias;  // in the same order
  std::vector<float> down_bias;

  /// Otherwise it is another rank's.
  bool is_held() const { return down.rows > 0; }
};

struct PackedLayer {
  std::vector<float> attention_norm;
  kernels::cpu::PackedMatrix qkv;  // all queries, then keys, then values
  std::vector<float> qkv_bias;
  kernels::cpu::PackedMatrix o;
  std::vector<float> o_bias;
  std::vector<float> sinks;
  std::vector<float> mlp_norm;
  kernels::cpu::PackedMatrix router;
  std::vector<float> router_bias;
  std::vector<PackedExpert> experts;

  /// Any that is held: all have the same formats and widths.
  const PackedExpert& held_expert() const {
    const auto held = std::ranges::find_if(experts, &PackedExpert::is_held);
    check(held != experts.end(), "a rank holds at least one expert");
    return *held;
  }
};

/// The output head once more in bytes, and how far each row's may be from the exact one.
struct Screen {
  kernels::cpu::PackedMatrix weights;  // no rows: the head is not screened
  HostArray<float> residual_norms;     // [rows rounded up to 16]
  HostArray<float> norms;
  float largest_norm = 0;

  std::int64_t bytes() const {
    return weights.bytes() +
           static_cast<std::int64_t>((residual_norms.size() + norms.size()) * sizeof(float));
  }
};

struct PackedModel {
  model::ModelConfig config;
  model::Matrix embedding;  // read row by row where it lies
  std::shared_ptr<model::WeightStorage> storage;
  std::vector<PackedLayer> layers;
  std::vector<float> final_norm;
  kernels::cpu::PackedMatrix lm_head;
  Screen screen;
  HostArray<std::uint8_t> memory;
};

/// What its memory will be, without a byte of the weights being read.
std::int64_t packed_bytes(const model::ModelWeights& weights, const Plan& plan);

/// Holds an error for shapes the kernels do not take.
Expected<PackedModel> pack_model(const model::ModelWeights& weights, const Plan& plan,
                                 ThreadPool& threads, const std::function<void(double)>& progress);

}  // namespace gauntlet::engine::cpu
