// Models written as files that other engines read too. Weights stream from their views to disk.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "core/expected.h"
#include "model/files/tensor_writer.h"
#include "model/tokens/tokenizer.h"
#include "model/weights.h"

namespace gauntlet::model::inline files {

/// A .gguf file as llama.cpp wants it: every weight in its own type, norms, biases, sinks and
/// routers in f32.
Expected<void> write_gguf(const ModelWeights& weights, const GgufTokens& tokens,
                          const std::filesystem::path& path, const WriteProgress& progress);

/// A folder in Hugging Face's layout, config.json last, so that half a folder is no model. MXFP4
/// experts stay MXFP4; every other weight is bf16 where that is exact, f16 where it is f16, or f32.
Expected<void> write_folder(const ModelWeights& weights,
                            const std::optional<std::string>& tokenizer_json,
                            const std::filesystem::path& folder, const WriteProgress& progress);

}  // namespace gauntlet::model::inline files
