// A draft head of random weights: what guessing costs, not what it gains.
#include <algorithm>

#include "core/random.h"
#include "model/eagle_head.h"

namespace gauntlet::model {
namespace {

/// Of the heads published for gpt-oss: six times the hidden width inside, 32,000 tokens, three
/// layers listened to, early, in the middle and late.
constexpr std::int64_t kInnerWidths = 6;
constexpr std::int64_t kDraftVocab = 32000;
constexpr std::int64_t kVocabUnit = 64;

}  // namespace

EagleHead random_eagle_head(const ModelConfig& target, std::uint64_t seed) {
  const std::int64_t hidden = target.hidden, layers = target.num_layers;
  const std::int64_t draft_vocab = std::min(kDraftVocab, target.vocab) / kVocabUnit * kVocabUnit;
  EagleHead head;
  head.config = {.hidden = hidden,
                 .intermediate = kInnerWidths * hidden,
                 .num_heads = target.num_heads,
                 .num_kv_heads = target.num_kv_heads,
                 .head_dim = target.head_dim,
                 .vocab = target.vocab,
                 .draft_vocab = draft_vocab};
  for (const std::int64_t layer : {std::int64_t{1}, layers / 2 - 1, layers - 3}) {
    const auto& before = head.config.boundaries;
    if (layer > (before.empty() ? 0 : before.back())) head.config.boundaries.push_back(layer);
  }
  const Random random(seed);
  std::uint64_t number = 0;
  const auto matrix = [&](std::int64_t rows, std::int64_t cols) {
    return Matrix{
        .type = WeightType::bf16, .rows = rows, .cols = cols, .random_key = random.bits(number++)};
  };
  const auto ones = [&] { return Vector(static_cast<std::size_t>(hidden), 1.f); };
  const std::int64_t kv_width = target.num_kv_heads * target.head_dim;
  head.fc = matrix(hidden, head.config.features());
  head.input_norm = ones();
  head.hidden_norm = ones();
  head.q = matrix(target.query_width(), 2 * hidden);
  head.k = matrix(kv_width, 2 * hidden);
  head.v = matrix(kv_width, 2 * hidden);
  head.o = matrix(hidden, target.query_width());
  head.mlp_norm = ones();
  head.gate = matrix(head.config.intermediate, hidden);
  head.up = matrix(head.config.intermediate, hidden);
  head.down = matrix(hidden, head.config.intermediate);
  head.final_norm = ones();
  head.lm_head = matrix(draft_vocab, hidden);
  // Spread over the whole vocabulary.
  for (std::int64_t id = 0; id < draft_vocab; ++id) {
    head.target_ids.push_back(static_cast<std::int32_t>(id * target.vocab / draft_vocab));
  }
  return head;
}

}  // namespace gauntlet::model
