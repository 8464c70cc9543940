// The tokenizer that comes with a model's files.
#pragma once
#include "model/files/model_files.h"
#include "model/tokens/tokenizer.h"

namespace gauntlet::model::inline tokens {

/// Of tokenizer.json, or of a GGUF file's metadata.
Expected<Tokenizer> load_tokenizer(const ModelFiles& files);

}  // namespace gauntlet::model::inline tokens
