// From any model this library can open, or random weights, to files of either kind.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "core/expected.h"
#include "model/files/model_writer.h"

namespace gauntlet::model {

struct ModelSource {
  ModelWeights weights;
  std::optional<GgufTokens> tokens;  // none: its files have no tokenizer
  std::string tokenizer_json;        // as its files have it; empty: to be made from tokens
};

Expected<ModelSource> open_source(const std::string& name_or_path);
ModelSource random_source(const ModelConfig& config, std::uint64_t seed);

enum class Existing { refuse, replace };

/// Writes a .gguf file where the path says so, otherwise a folder.
Expected<void> save_model(const ModelSource& source, const std::filesystem::path& path,
                          Existing existing, const WriteProgress& progress);

}  // namespace gauntlet::model
