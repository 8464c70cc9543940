// Texts that can be guessed, drafters that guess them right, wrong or at random, and a service that
// they guess for, for tests of the service.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "core/random.h"
#include "engine/serving/service.h"
#include "engine/speculation/ngram.h"
#include "engine/speculation/self_drafter.h"
#include "engine/steps/fake_runner.h"
#include "engine/steps/pooled_executor.h"

namespace gauntlet::engine::inline serving {

inline constexpr std::int32_t kDraftEos = 7;
inline constexpr std::int64_t kDraftVocab = 64;

/// Tokens that depend on the last three, so that texts repeat themselves, with an end now and then.
inline std::int32_t guessable_token(const FakeRunner::History& history) {
  std::uint64_t hash = 5;
  const std::size_t seen = std::min<std::size_t>(history.size(), 3);
  for (std::size_t i = history.size() - seen; i < history.size(); ++i) {
    hash = mix64(hash ^ static_cast<std::uint64_t>(history[i]));
  }
  return static_cast<std::int32_t>(hash % kDraftVocab);
}

/// What fewer experts say: mostly the same.
inline std::int32_t approximate_token(const FakeRunner::History& history) {
  const std::int32_t right = guessable_token(history);
  return mix64(history.size()) % 4 == 0 ? (right + 1) % static_cast<std::int32_t>(kDraftVocab)
                                        : right;
}

enum class Guesses { right, all_right, wrong, mixed, hostile, ngram, experts, fed, late, several };
enum class Shape { chain, tree };

/// Guesses right or wrong as its seed has it, more than asked for, and ids that there are not.
/// Trees are as wide and as deep as chance has it, too.
class RandomDrafter final : public Drafter {
 public:
  RandomDrafter(Guesses kind, std::uint64_t seed, Shape shape = Shape::chain)
      : kind_(kind), shape_(shape), random_(seed) {}
  std::string_view name() const override { return "random"; }
  bool fans_out() const override { return shape_ == Shape::tree; }

  std::vector<Draft> propose(std::span<const DraftWish> wishes) override {
    std::vector<Draft> drafts;
    for (const DraftWish& wish : wishes) {
      EXPECT_GT(wish.most, 0);
      const std::uint64_t count = count_for(static_cast<std::uint64_t>(wish.most));
      drafts.push_back(shape_ == Shape::tree ? tree(wish, count) : chain(wish, count));
    }
    return drafts;
  }
  void end(std::int64_t) override { ++ended; }
  int ended = 0;

 private:
  Draft chain(const DraftWish& wish, std::uint64_t count) {
    Draft draft;
    FakeRunner::History text(wish.tokens.begin(), wish.tokens.end());
    for (std::uint64_t i = 0; i < count; ++i) {
      draft.push_back(guess(guessable_token(text)));
      text.push_back(draft.back());
    }
    return draft;
  }

  /// Behind the guess before it, or behind any; where a guess is right, its siblings seldom are.
  Draft tree(const DraftWish& wish, std::uint64_t count) {
    Draft draft;
    std::vector<FakeRunner::History> texts = {{wish.tokens.begin(), wish.tokens.end()}};
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto row = random_.next_below(2) == 0 ? i : random_.next_below(i + 1);
      FakeRunner::History text = texts[row];
      draft.add(guess(guessable_token(text)), static_cast<std::int32_t>(row) - 1);
      text.push_back(draft.back());
      texts.push_back(std::move(text));
    }
    return draft;
  }

  std::uint64_t count_for(std::uint64_t most) {
    if (kind_ == Guesses::all_right) return most;
    return random_.next_below(kind_ == Guesses::hostile ? 20 : most + 1);
  }

  std::int32_t guess(std::int32_t right) {
    switch (kind_) {
      case Guesses::right:
      case Guesses::all_right:
        return right;
      case Guesses::wrong:
        return (right + 1) % static_cast<std::int32_t>(kDraftVocab);
      case Guesses::hostile:
        return static_cast<std::int32_t>(random_.next_below(3 * kDraftVocab)) - 64;
      default:
        return random_.next_below(4) == 0
                   ? static_cast<std::int32_t>(random_.next_below(kDraftVocab))
                   : right;
    }
  }

  const Guesses kind_;
  const Shape shape_;
  Random random_;
};

/// Must be shown what steps compute, and sees whether that is what the request says.
class FedDrafter final : public Drafter {
 public:
  /// With a seam, it reads residuals there, and leaves its guesses there where they may be late.
  explicit FedDrafter(std::uint64_t seed, Shape shape = Shape::chain,
                      const DeviceSeam* seam = nullptr)
      : shape_(shape), seam_(seam), random_(seed) {}
  std::string_view name() const override { return "fed"; }
  bool fans_out() const override { return shape_ == Shape::tree; }
  std::vector<int> residuals_after() const override { return {0, 1}; }

  /// The fake runner's residuals are tokens, and those after a layer thousands more.
  void computed(std::span<const ComputedTokens> tokens) override {
    for (const ComputedTokens& some : tokens) {
      const float* residuals = some.residuals.data();
      std::int64_t stride = some.count;
      if (some.device_row) {
        ASSERT_NE(seam_, nullptr);
        residuals = seam_->residuals + *some.device_row;
        stride = seam_->most_tokens;
        ++on_device;
      } else {
        ASSERT_EQ(std::ssize(some.residuals), 2 * some.count);
      }
      for (std::int64_t i = 0; i < some.count; ++i) {
        const auto token = static_cast<std::int32_t>(residuals[i]);
        EXPECT_EQ(static_cast<std::int32_t>(residuals[stride + i]), 1000 + token);
        seen_[some.id][some.begin + i] = token;
      }
    }
  }
  std::vector<Draft> propose(std::span<const DraftWish> wishes) override {
    std::vector<Draft> drafts;
    for (const DraftWish& wish : wishes) {
      for (const auto& [position, token] : seen_[wish.id]) {
        EXPECT_LT(position, std::ssize(wish.tokens) - 1) << "was shown a guess that was wrong";
        EXPECT_EQ(token, wish.tokens[position]) << "position " << position;
      }
      Draft& draft = drafts.emplace_back();
      if (!seen_[wish.id].contains(std::ssize(wish.tokens) - 2)) continue;
      ++asked;
      FakeRunner::History text(wish.tokens.begin(), wish.tokens.end());
      while (std::ssize(draft) < wish.most && random_.next_below(8) > 0) {
        const std::int32_t right = guessable_token(text);
        const auto last = static_cast<std::int32_t>(draft.size()) - 1;
        if (shape_ == Shape::tree) draft.add(right ^ 1, last);
        shape_ == Shape::tree ? draft.add(right, last) : draft.push_back(right);
        text.push_back(right);
      }
    }
    if (seam_ != nullptr && std::ranges::all_of(wishes, &DraftWish::may_be_late)) hide(drafts);
    return drafts;
  }
  bool reads_on_device() const override { return seam_ != nullptr; }
  void reveal(Draft& draft) const override {
    for (std::int32_t& id : draft) id = places()[place_of_guess(id)];
  }
  void end(std::int64_t id) override { seen_.erase(id); }
  int asked = 0;
  int on_device = 0;  // times that it was shown residuals there
  int late = 0;       // drafts that were

 private:
  std::int32_t* places() const { return static_cast<std::int32_t*>(seam_->guesses); }
  void hide(std::vector<Draft>& drafts) {
    std::int64_t place = 0;
    for (Draft& draft : drafts) {
      if (place + std::ssize(draft) > seam_->num_guesses) continue;
      late += !draft.empty();
      for (std::int32_t& id : draft) {
        places()[place] = id;
        id = late_guess(place++);
      }
    }
  }

  const Shape shape_;
  const DeviceSeam* const seam_;
  Random random_;
  std::map<std::int64_t, std::map<std::int64_t, std::int32_t>> seen_;  // by request and position
};

using MakesDrafter = std::function<std::vector<std::shared_ptr<Drafter>>(Executor& target)>;

inline MakesDrafter one_drafter(const std::shared_ptr<Drafter>& drafter) {
  return [drafter](Executor&) { return std::vector{drafter}; };
}

inline MakesDrafter drafters_for(Guesses kind, std::uint64_t seed, Shape shape = Shape::chain) {
  return [=](Executor& target) -> std::vector<std::shared_ptr<Drafter>> {
    switch (kind) {
      case Guesses::ngram:
        return {std::make_shared<NgramDrafter>()};
      case Guesses::experts:
        return {std::make_shared<SelfDrafter>(target, 1)};
      case Guesses::fed:
        return {std::make_shared<FedDrafter>(seed, shape)};
      case Guesses::late:
        return {std::make_shared<FedDrafter>(seed, shape, target.device_seam())};
      case Guesses::several:
        return {std::make_shared<NgramDrafter>(), std::make_shared<SelfDrafter>(target, 2),
                std::make_shared<FedDrafter>(
                    seed, shape, shape == Shape::chain ? target.device_seam() : nullptr)};
      default:
        return {std::make_shared<RandomDrafter>(kind, seed, shape)};
    }
  };
}

/// Ids that depend on the last one.
inline TokenMask mask_of(std::uint64_t kind) {
  return [kind](std::span<const std::int32_t> output) {
    const std::uint64_t seen = output.empty() ? kind : static_cast<std::uint64_t>(output.back());
    const std::uint64_t bits = mix64(seen + kind) | mix64(seen + kind + 1) | 1;
    return std::vector<std::uint32_t>{static_cast<std::uint32_t>(bits),
                                      static_cast<std::uint32_t>(bits >> 32)};
  };
}

/// A service over a fake runner, which guesses where somebody is made who does.
struct DraftBench {
  DraftBench(int in_flight, std::int64_t pages, const SchedulerConfig& scheduler,
             const MakesDrafter& makes, std::int64_t most,
             DraftLengths lengths = DraftLengths::fixed, std::function<double()> clock = {},
             const TreeShape& tree = {}) {
    model::ModelConfig config;
    config.name = "fake";
    config.vocab = kDraftVocab;
    config.max_positions = 120;
    config.hidden = 1;
    config.sliding_window = 8;
    config.eos_ids = {kDraftEos};
    auto made = std::make_unique<FakeRunner>(config,
                                             StepLimits{.tokens = 24,
                                                        .items = 24,
                                                        .page_tokens = 4,
                                                        .export_layers = 2,
                                                        .experts_per_token = 4},
                                             in_flight);
    made->share_device();
    made->next = guessable_token;
    made->next_approximately = approximate_token;
    runner = made.get();
    executor = std::make_unique<PooledExecutor>(
        KvPoolConfig{.page_tokens = 4, .window = 8, .full_pages = pages, .sliding_pages = pages},
        std::move(made));
    SchedulerConfig limits = scheduler;
    limits.max_step_tokens = 24;
    Speculation guesses{.max_drafts = most, .lengths = lengths, .tree = tree};
    if (makes) guesses.others = makes(*executor);
    if (makes) {
      guesses.drafter = guesses.others.front();
      guesses.others.erase(guesses.others.begin());
    }
    service =
        std::make_unique<Service>(*executor, ServiceConfig{.scheduler = limits,
                                                           .now_s = std::move(clock),
                                                           .speculation = std::move(guesses)});
  }
  FakeRunner* runner = nullptr;
  std::unique_ptr<PooledExecutor> executor;
  std::unique_ptr<Service> service;
};

}  // namespace gauntlet::engine::inline serving
