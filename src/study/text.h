// The tokens that a study runs on: real text where the model can read, random ids where it cannot.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/expected.h"
#include "model/tokens/tokenizer.h"

namespace gauntlet::study {

/// `file` empty: the text that comes with the program. An error when the text is too short.
Expected<std::vector<std::int32_t>> study_text(const model::Tokenizer& tokenizer,
                                               const std::string& file);
/// For random weights, which foretell nothing.
std::vector<std::int32_t> random_text(std::int64_t vocab);

}  // namespace gauntlet::study
