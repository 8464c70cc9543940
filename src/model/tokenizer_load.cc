// Where a model keeps its tokenizer.
#include <fmt/format.h>

#include "model/gguf.h"
#include "model/model_files.h"
#include "model/tokenizer.h"

namespace gauntlet::model {
namespace {

Expected<Tokenizer> load_from_gguf(const ModelFile& model) {
  const auto file = GgufFile::parse(model);
  if (!file) return file.error();
  auto tokens = file->texts("tokenizer.ggml.tokens");
  auto types = file->integers("tokenizer.ggml.token_type");
  auto merges = file->texts("tokenizer.ggml.merges");
  if (!tokens || !types || !merges) {
    return Error{
        fmt::format("{} has no tokenizer: tokens, token_type or merges are missing under "
                    "tokenizer.ggml",
                    model.where)};
  }
  return Tokenizer::from_gguf({.model = file->text("tokenizer.ggml.model").value_or(""),
                               .pre = file->text("tokenizer.ggml.pre").value_or(""),
                               .tokens = std::move(*tokens),
                               .types = std::move(*types),
                               .merges = std::move(*merges)},
                              model.where);
}

}  // namespace

Expected<Tokenizer> load_tokenizer(const ModelFiles& files) {
  if (const ModelFile* gguf = files.gguf()) return load_from_gguf(*gguf);
  const ModelFile* json = files.find("tokenizer.json");
  if (!json) return Error{fmt::format("{} has no tokenizer.json", files.where())};
  return Tokenizer::from_json(json->text(), json->where);
}

}  // namespace gauntlet::model
