// Everything a step writes besides the KV cache: one allocation, zeroed once, never grown.
#pragma once
#include <cuda_bf16.h>

#include "core/cuda/memory.h"
#include "engine/cuda/step_inputs.h"
#include "engine/options.h"
#include "kernels/cuda/sampling/sample.h"
#include "model/config.h"

namespace gauntlet::engine::cuda {

/// Rows of logits computed together.
inline constexpr int kLogitRows = 256;

/// Guesses that a draft head can leave for a step.
inline constexpr std::int64_t kGuessPlaces = 8192;

struct BufferSizes {
  std::int64_t tokens = 0;           // of one step
  std::int64_t sequences = 0;        // of one step
  std::int64_t decode_rows = 0;      // tokens that decode in one launch: no fewer than sequences
  std::int64_t attention_bytes = 0;  // scratch of the attention kernels
  Fusion fusion = Fusion::fused;     // op by op, what passes between operations lies in memory
  bool sums_over_ranks = false;      // what a layer adds lies in memory before it is added
  std::int64_t export_layers = 0;    // whose residuals are kept until the step's end
};

struct Buffers {
  Buffers(const model::ModelConfig& config, const BufferSizes& sizes);
  static std::int64_t bytes_for(const model::ModelConfig& config, const BufferSizes& sizes);

  /// Of rows of so many bf16 elements: whole blocks of the products.
  static std::int64_t stride(std::int64_t cols) { return (cols + 63) / 64 * 64; }

  DeviceMemory memory;
  float* x = nullptr;                 // [tokens, hidden]
  __nv_bfloat16* normed = nullptr;    // [tokens, stride(hidden)]
  float* qkv = nullptr;               // [tokens, qkv rows]
  __nv_bfloat16* q = nullptr;         // [tokens, query width]
  __nv_bfloat16* attended = nullptr;  // [tokens, stride(query width)]
  std::uint8_t* attention = nullptr;  // scratch
  std::uint32_t* arrived = nullptr;   // [sequences, kv_heads]
  std::int32_t* chosen = nullptr;     // [tokens, experts per token]
  float* chosen_weights = nullptr;
  std::int32_t* first_slot = nullptr;           // [layers, experts + 1]
  std::int32_t* slot_token = nullptr;           // [slots]
  std::int32_t* slot_row = nullptr;             // [slots]
  float* slot_weight = nullptr;                 // [slots]
  std::int32_t* routed = nullptr;               // blocks of the router that finished
  __nv_bfloat16* permuted = nullptr;            // [slots, stride(hidden)]
  __nv_bfloat16* activated = nullptr;           // [slots, stride(intermediate)]
  float* experts = nullptr;                     // [slots, hidden], by token and rank; or by slot
  float* projected = nullptr;                   // [tokens, hidden], op by op: what o gave; or what
                                                // ranks add up
  float* unrounded = nullptr;                   // [tokens, hidden], op by op: what the router reads
  float* router_logits = nullptr;               // [tokens, num_experts], op by op
  float* gate_up = nullptr;                     // [slots, 2 * intermediate], op by op
  __nv_bfloat16* final_rows = nullptr;          // [kLogitRows, stride(hidden)]
  float* logits = nullptr;                      // [kLogitRows, vocab]
  kernels::cuda::RowChoice* choices = nullptr;  // [tokens], behind them the guesses of a draft head
  float* residuals = nullptr;                   // [export layers, tokens, hidden]
  std::int64_t attention_bytes = 0;

 private:
  std::int64_t lay_out(const model::ModelConfig& config, const BufferSizes& sizes,
                       std::uint8_t* base);
  Buffers() = default;
};

}  // namespace gauntlet::engine::cuda
