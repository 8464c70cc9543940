// Prompts of a wanted length, and the request that carries them: token ids where the server takes
// them (exact), words of a measured length elsewhere.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "load/workload/workload.h"

namespace gauntlet::load::inline workload {

enum class Endpoint { completions, chat };

/// tokens = intercept + per_word * words: what a chat template adds, and what the tokenizer does.
struct WordCost {
  double intercept = 0;
  double per_word = 1;
};

struct PromptSource {
  std::vector<std::int32_t> ids;  // to draw from
  std::int64_t vocab = 0;         // where there are none: draw from [0, vocab)
  WordCost words;                 // where that is 0, too
};

struct RequestForm {
  Endpoint endpoint = Endpoint::completions;
  std::string model;
  bool ignore_eos = false;
  std::optional<double> temperature;
};

/// Common English words that most vocabularies hold whole, with the space before them.
std::string words(std::int64_t count, std::uint64_t seed);

/// The JSON of a streaming request.
std::string request_body(const RequestForm& form, const PromptSource& source,
                         const PlannedRequest& request, std::uint64_t seed);

}  // namespace gauntlet::load::inline workload
