#include "model/load_tokenizer.h"

#include <fmt/format.h>

namespace gauntlet::model {

Expected<Tokenizer> load_tokenizer(const ModelFiles& files) {
  const ModelFile* file = files.find("tokenizer.json");
  if (!file) return Error{fmt::format("{} has no tokenizer.json", files.where())};
  return Tokenizer::from_json(file->text(), file->where);
}

}  // namespace gauntlet::model
