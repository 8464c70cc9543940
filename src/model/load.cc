// From a model's files to its weights.
#include <fmt/format.h>

#include "model/layouts.h"
#include "model/safetensors.h"
#include "model/weights.h"

namespace gauntlet::model {
namespace {

Expected<ModelConfig> read_config(const ModelFiles& files) {
  const ModelFile* file = files.find("config.json");
  if (!file) return Error{.message = fmt::format("{} has no config.json", files.where())};
  auto config = parse_config(file->text(), file->where);
  if (!config) return config;
  config->name = files.name();
  if (const ModelFile* generation = files.find("generation_config.json")) {
    const auto applied = apply_generation_config(generation->text(), generation->where, *config);
    if (!applied) return applied.error();
  }
  if (const ModelFile* tokenizer = files.find("tokenizer_config.json")) {
    const auto applied = apply_tokenizer_config(tokenizer->text(), tokenizer->where, *config);
    if (!applied) return applied.error();
  }
  return config;
}

}  // namespace

Expected<ModelWeights> load_model(const ModelFiles& files) {
  const auto config = read_config(files);
  if (!config) return config.error();
  const auto table = read_safetensors(files);
  if (!table) return table.error();
  auto weights = bind_huggingface(*config, *table);
  if (!weights) return weights;
  weights->storage = files.storage();
  return weights;
}

Expected<ModelWeights> load_model(const std::string& name_or_path) {
  const auto files = open_model(name_or_path);
  if (!files) return files.error();
  return load_model(*files);
}

}  // namespace gauntlet::model
