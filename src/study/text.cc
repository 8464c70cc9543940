#include "study/text.h"

#include <fmt/format.h>

#include "core/os/files.h"
#include "core/random.h"
#include "engine/measure/sample_text.h"

namespace gauntlet::study {
namespace {

constexpr std::size_t kLeastTokens = 2048;
constexpr std::size_t kMostTokens = 32768;

}  // namespace

Expected<std::vector<std::int32_t>> study_text(const model::Tokenizer& tokenizer,
                                               const std::string& file) {
  std::string text(embedded::validation_txt());
  if (!file.empty()) {
    auto read = read_file(file);
    if (!read) return read.error();
    text = std::move(*read);
  }
  std::vector<std::int32_t> tokens = tokenizer.encode(text);
  if (tokens.size() < kLeastTokens) {
    return Error{fmt::format("{} has {} tokens, and a study wants {} at least", file, tokens.size(),
                             kLeastTokens),
                 ErrorKind::wrong_use};
  }
  tokens.resize(std::min(tokens.size(), kMostTokens));
  return tokens;
}

std::vector<std::int32_t> random_text(std::int64_t vocab) {
  constexpr std::uint64_t kSeed = 0x7E87;
  Random random(kSeed);
  std::vector<std::int32_t> tokens;
  for (std::size_t i = 0; i < kMostTokens; ++i) {
    tokens.push_back(
        static_cast<std::int32_t>(random.next_below(static_cast<std::uint64_t>(vocab))));
  }
  return tokens;
}

}  // namespace gauntlet::study
