// Guesses by someone who knows the answers, right as often as was asked for: what guessing would
// gain where a model's own drafters accept nothing, as with random weights. Never a measurement of
// a drafter.
#pragma once
#include <map>
#include <memory>
#include <vector>

#include "core/random.h"
#include "engine/speculation/drafter.h"

namespace gauntlet::engine::inline measure {

/// How often each guess has to be right when those before it are, so that a step with so many
/// guesses brings so many tokens on average; the tokens are 1 to guesses + 1.
double acceptance_for(double tokens_a_step, std::int64_t guesses);

class OracleDrafter final : public Drafter {
 public:
  using Text = std::vector<std::int32_t>;

  /// The inner one, if any, guesses for its cost, and as many as it does; its ids are replaced.
  OracleDrafter(double acceptance, std::int64_t vocab, std::shared_ptr<Drafter> inner = nullptr);

  /// Prompts with what follows; no prompt begins another text. In place of those before.
  void know(std::vector<Text> texts) { texts_ = std::move(texts); }

  std::string_view name() const override { return inner_ ? inner_->name() : "oracle"; }
  std::vector<int> residuals_after() const override;
  void computed(std::span<const ComputedTokens> tokens) override;
  std::vector<Draft> propose(std::span<const DraftWish> wishes) override;
  bool reads_on_device() const override { return inner_ && inner_->reads_on_device(); }
  double late_seconds() const override { return inner_ ? inner_->late_seconds() : 0; }
  void end(std::int64_t id) override;

 private:
  /// The text that this one is the beginning of; null: it is not known.
  const Text* text_of(const DraftWish& wish);

  const double acceptance_;
  const std::int64_t vocab_;
  const std::shared_ptr<Drafter> inner_;
  std::vector<Text> texts_;
  std::map<std::int64_t, std::size_t> text_of_request_;
  const Random random_;
  std::uint64_t num_drawn_ = 0;
};

}  // namespace gauntlet::engine::inline measure
