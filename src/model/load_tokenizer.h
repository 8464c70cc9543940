// The tokenizer that comes with a model's files.
#pragma once
#include "model/model_files.h"
#include "model/tokenizer.h"

namespace gauntlet::model {

/// Of tokenizer.json, or of a GGUF file's metadata.
Expected<Tokenizer> load_tokenizer(const ModelFiles& files);

}  // namespace gauntlet::model
