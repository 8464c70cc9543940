#include "model/tokens/load_tokenizer.h"

#include <fmt/format.h>

#include "model/files/gguf.h"
#include "model/tokens/token_list.h"

namespace gauntlet::model::inline tokens {

Expected<Tokenizer> load_tokenizer(const ModelFiles& files) {
  if (const ModelFile* file = files.gguf()) {
    const auto gguf = GgufFile::parse(*file);
    if (!gguf) return gguf.error();
    const auto tokens = read_gguf_tokens(*gguf);
    if (!tokens) return tokens.error();
    return Tokenizer::from_gguf(*tokens, file->where);
  }
  const ModelFile* file = files.find("tokenizer.json");
  if (!file) return Error{.message = fmt::format("{} has no tokenizer.json", files.where())};
  return Tokenizer::from_json(file->text(), file->where);
}

}  // namespace gauntlet::model::inline tokens
