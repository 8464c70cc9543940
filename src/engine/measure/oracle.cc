#include "engine/measure/oracle.h"

#include <algorithm>

#include "core/check.h"

namespace gauntlet::engine::inline measure {
namespace {

constexpr std::uint64_t kOracleSeed = 0x51AFD7ED558CCD25;

double tokens_with(double acceptance, std::int64_t guesses) {
  double tokens = 1, all_right = 1;
  for (std::int64_t i = 0; i < guesses; ++i) tokens += all_right *= acceptance;
  return tokens;
}

}  // namespace

double acceptance_for(double tokens_a_step, std::int64_t guesses) {
  check(tokens_a_step >= 1 && tokens_a_step <= static_cast<double>(guesses + 1),
        "a step brings one token, and one more for each guess at most");
  double low = 0, high = 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (tokens_with(middle, guesses) < tokens_a_step ? low : high) = middle;
  }
  return high;
}

OracleDrafter::OracleDrafter(double acceptance, std::int64_t vocab, std::shared_ptr<Drafter> inner)
    : acceptance_(acceptance), vocab_(vocab), inner_(std::move(inner)), random_(kOracleSeed) {}

std::vector<int> OracleDrafter::residuals_after() const {
  return inner_ ? inner_->residuals_after() : std::vector<int>();
}

void OracleDrafter::computed(std::span<const ComputedTokens> tokens) {
  if (inner_) inner_->computed(tokens);
}

const OracleDrafter::Text* OracleDrafter::text_of(const DraftWish& wish) {
  const auto known = text_of_request_.find(wish.id);
  if (known != text_of_request_.end()) return &texts_[known->second];
  const auto found = std::ranges::find_if(texts_, [&](const Text& text) {
    return text.size() >= wish.tokens.size() &&
           std::equal(wish.tokens.begin(), wish.tokens.end(), text.begin());
  });
  if (found == texts_.end()) return nullptr;
  text_of_request_[wish.id] = static_cast<std::size_t>(found - texts_.begin());
  return &*found;
}

std::vector<Draft> OracleDrafter::propose(std::span<const DraftWish> wishes) {
  std::vector<Draft> drafts;
  if (inner_) {
    drafts = inner_->propose(wishes);
  } else {
    for (const DraftWish& wish : wishes) drafts.emplace_back(static_cast<std::size_t>(wish.most));
  }
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    const Text* text = text_of(wishes[i]);
    check(text != nullptr, "an oracle was asked for a text that it does not know");
    bool is_right = true;
    for (std::size_t g = 0; g < drafts[i].size(); ++g) {
      const std::size_t at = wishes[i].tokens.size() + g;
      const std::int32_t right = at < text->size() ? (*text)[at] : 0;
      is_right = is_right && random_.unit(num_drawn_++) < acceptance_;
      drafts[i][g] = is_right ? right : static_cast<std::int32_t>((right + 1) % vocab_);
    }
  }
  return drafts;
}

void OracleDrafter::end(std::int64_t id) {
  text_of_request_.erase(id);
  if (inner_) inner_->end(id);
}

}  // namespace gauntlet::engine::inline measure
