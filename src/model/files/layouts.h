// The ways in which files name and arrange the weights of gpt-oss; each becomes the same views.
#pragma once
#include "model/tensor.h"
#include "model/weights.h"

namespace gauntlet::model::inline files {

/// model.layers.N...: experts in MXFP4, or in bf16 and transposed.
Expected<ModelWeights> bind_huggingface(const ModelConfig& config, const TensorTable& table);

/// block.N...: as OpenAI released them, q, k and v in one tensor.
Expected<ModelWeights> bind_original(const ModelConfig& config, const TensorTable& table);

/// blk.N...: GGUF's names, gate and up in tensors of their own.
Expected<ModelWeights> bind_gguf(const ModelConfig& config, const TensorTable& table);

}  // namespace gauntlet::model::inline files
