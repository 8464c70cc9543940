// A tokenizer for random weights: bytes go in as tokens of their own, and every other id comes out
// as a word that says its number, so that a server of such a model can be spoken to.
#pragma once
#include <cstdint>

#include "model/tokens/tokenizer.h"

namespace gauntlet::server {

/// With harmony's special tokens, at the ids gpt-oss has them where the vocabulary is as large and
/// at its end otherwise.
Expected<model::Tokenizer> synthetic_tokenizer(std::int64_t vocab);

}  // namespace gauntlet::server
