// From a model's files to its weights.
#include <fmt/format.h>

#include "model/files/gguf.h"
#include "model/files/layouts.h"
#include "model/files/safetensors.h"
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

Expected<ModelWeights> load_folder(const ModelFiles& files) {
  const auto config = read_config(files);
  if (!config) return config.error();
  const auto table = read_safetensors(files);
  if (!table) return table.error();
  const bool original = table->find("embedding.weight") != nullptr;
  return original ? bind_original(*config, *table) : bind_huggingface(*config, *table);
}

Expected<ModelWeights> load_gguf(const ModelFile& file) {
  const auto gguf = GgufFile::parse(file);
  if (!gguf) return gguf.error();
  auto config = parse_gguf_config(*gguf);
  if (!config) return config.error();
  config->name = std::filesystem::path(file.name).stem().string();
  TensorTable table(file.where);
  for (const Tensor& tensor : gguf->tensors()) {
    if (const auto added = table.add(tensor); !added) return added.error();
  }
  return bind_gguf(*config, table);
}

}  // namespace

Expected<ModelWeights> load_model(const ModelFiles& files) {
  const ModelFile* gguf = files.gguf();
  auto weights = gguf ? load_gguf(*gguf) : load_folder(files);
  if (weights) weights->storage = files.storage();
  return weights;
}

Expected<ModelWeights> load_model(const std::string& name_or_path) {
  const auto files = open_model(name_or_path);
  if (!files) return files.error();
  return load_model(*files);
}

}  // namespace gauntlet::model
