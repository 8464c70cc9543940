#include "model/convert.h"

#include <fmt/format.h>

#include "model/files/gguf.h"
#include "model/tokens/token_list.h"

namespace gauntlet::model {
namespace {

namespace fs = std::filesystem;

Expected<void> read_tokens(const ModelFiles& files, ModelSource& source) {
  if (const ModelFile* file = files.gguf()) {
    const auto gguf = GgufFile::parse(*file);
    if (!gguf) return gguf.error();
    auto tokens = read_gguf_tokens(*gguf);
    if (!tokens) return tokens.error();
    source.tokens = std::move(*tokens);
  } else if (const ModelFile* json = files.find("tokenizer.json")) {
    auto tokens = read_json_tokens(json->text(), json->where, source.weights.config.vocab);
    if (!tokens) return tokens.error();
    source.tokens = std::move(*tokens);
    source.tokenizer_json = json->text();
  }
  return {};
}

}  // namespace

Expected<ModelSource> open_source(const std::string& name_or_path) {
  const auto files = open_model(name_or_path);
  if (!files) return files.error();
  auto weights = load_model(*files);
  if (!weights) return weights.error();
  ModelSource source{.weights = std::move(*weights)};
  if (const auto read = read_tokens(*files, source); !read) return read.error();
  return source;
}

ModelSource random_source(const ModelConfig& config, std::uint64_t seed) {
  return {.weights = random_model(config, seed), .tokens = make_tokens(config)};
}

Expected<void> save_model(const ModelSource& source, const fs::path& path, Existing existing,
                          const WriteProgress& progress) {
  std::error_code error;
  const bool taken = fs::exists(path, error) && !fs::is_empty(path, error);
  if (taken && existing == Existing::refuse) {
    return Error{.message = fmt::format("{} is there already; --force replaces it", path.string()),
                 .kind = ErrorKind::wrong_use};
  }
  if (path.extension() == ".gguf") {
    if (!source.tokens) {
      return Error{.message =
                       fmt::format("{} has no tokenizer.json, which a GGUF file carries; put "
                                   "it beside the weights",
                                   source.weights.config.name)};
    }
    return write_gguf(source.weights, *source.tokens, path, progress);
  }
  std::optional<std::string> json;
  if (source.tokens) {
    json = source.tokenizer_json.empty() ? write_tokenizer_json(*source.tokens)
                                         : source.tokenizer_json;
  }
  return write_folder(source.weights, json, path, progress);
}

}  // namespace gauntlet::model
