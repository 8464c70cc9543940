// The tokenizer of gauntlet-tiny, for tests that need some text.
#pragma once
#include "core/os/files.h"
#include "model/tokens/tokenizer.h"

namespace gauntlet::engine {

inline const model::Tokenizer& tiny_tokenizer() {
  static const model::Tokenizer tokenizer = [] {
    const auto text = read_file(GAUNTLET_SOURCE_DIR "/models/gauntlet-tiny/tokenizer.json");
    return *model::Tokenizer::from_json(*text, "gauntlet-tiny");
  }();
  return tokenizer;
}

}  // namespace gauntlet::engine
