// Are guesses made where they pay, and never much worse than none, where plain steps overlap with
// what the host does between them? Over a simulated clock.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>

#include "engine/serving/drafter_scenario.h"
#include "engine/serving/recorded_events.h"
#include "engine/serving/service.h"
#include "engine/steps/pooled_executor.h"

namespace gauntlet::engine::inline serving {
namespace {

/// What a step takes: on the device by its rows, and on the host, which waits for it and then makes
/// the next one ready. Two plain steps under way hide the host's part.
struct OverlapCosts {
  double row_s = 0.02;
  double host_s = 0.3;
  double guess_s = 0.1;
  double feed_s = 0;
  bool on_device = false;  // guesses are made in front of the step, and the host does not wait
};

struct OverlapClock {
  double now_s = 0;
  double device_s = 0;  // when it has done what it was given
};

class OverlappingRunner final : public Runner {
 public:
  OverlappingRunner(std::unique_ptr<FakeRunner> inner, OverlapClock& clock,
                    const OverlapCosts& costs)
      : inner_(std::move(inner)), clock_(clock), costs_(costs) {}

  const model::ModelConfig& config() const override { return inner_->config(); }
  const Plan& plan() const override { return inner_->plan(); }
  StepLimits limits() const override { return inner_->limits(); }
  int most_in_flight() const override { return inner_->most_in_flight(); }
  void watch(LayerProbe*) override {}
  StepTraffic last_traffic() const override { return {}; }
  std::span<const float> last_residuals() const override { return inner_->last_residuals(); }
  std::int64_t weight_bytes() const override { return 0; }

  Ticket start(StepData step) override {
    clock_.now_s += costs_.host_s;
    clock_.device_s = std::max(clock_.device_s, clock_.now_s) + 1 +
                      costs_.row_s * static_cast<double>(step.num_tokens());
    ends_s_.push_back(clock_.device_s);
    return inner_->start(std::move(step));
  }
  std::vector<RowResult> finish(Ticket ticket) override {
    clock_.now_s = std::max(clock_.now_s, ends_s_.front());
    ends_s_.pop_front();
    return inner_->finish(ticket);
  }

 private:
  std::unique_ptr<FakeRunner> inner_;
  OverlapClock& clock_;
  const OverlapCosts costs_;
  std::deque<double> ends_s_;
};

/// Right as often as asked for, at a price.
class PricedDrafter final : public Drafter {
 public:
  PricedDrafter(double acceptance, OverlapClock& clock, const OverlapCosts& costs)
      : acceptance_(acceptance), clock_(clock), costs_(costs), random_(1) {}
  std::string_view name() const override { return "priced"; }
  std::vector<int> residuals_after() const override {
    return costs_.feed_s > 0 ? std::vector<int>{0, 1} : std::vector<int>();
  }
  void computed(std::span<const ComputedTokens> tokens) override {
    clock_.now_s += costs_.feed_s * static_cast<double>(tokens.size());
  }
  std::vector<Draft> propose(std::span<const DraftWish> wishes) override {
    std::vector<Draft> drafts;
    late_s_ = 0;
    for (const DraftWish& wish : wishes) {
      (costs_.on_device ? late_s_ : clock_.now_s) +=
          costs_.guess_s * static_cast<double>(wish.most);
      FakeRunner::History text(wish.tokens.begin(), wish.tokens.end());
      Draft& draft = drafts.emplace_back();
      for (std::int64_t g = 0; g < wish.most; ++g) {
        const std::int32_t right = guessable_token(text);
        const bool is_right = static_cast<double>(random_.next_below(1000)) < 1000 * acceptance_;
        draft.push_back(is_right ? right : (right + 1) % static_cast<std::int32_t>(kDraftVocab));
        text.push_back(draft.back());
      }
      asked += wish.most;
    }
    clock_.device_s = std::max(clock_.device_s, clock_.now_s) + late_s_;
    return drafts;
  }
  double late_seconds() const override { return late_s_; }
  std::int64_t asked = 0;

 private:
  const double acceptance_;
  OverlapClock& clock_;
  const OverlapCosts costs_;
  Random random_;
  double late_s_ = 0;
};

struct Overlapped {
  double seconds = 0;
  std::int64_t asked = 0;
  std::int64_t steps = 0;
};

/// Requests one after the other, each of a hundred tokens; without an acceptance nobody guesses.
Overlapped play(const OverlapCosts& costs, int requests, std::optional<double> acceptance = {}) {
  OverlapClock clock;
  model::ModelConfig config;
  config.name = "fake";
  config.vocab = kDraftVocab;
  config.max_positions = 120;
  config.hidden = 1;
  config.sliding_window = 8;
  auto fake = std::make_unique<FakeRunner>(
      config, StepLimits{.tokens = 24, .items = 24, .page_tokens = 4, .export_layers = 2}, 2);
  fake->next = guessable_token;
  PooledExecutor executor({.page_tokens = 4, .window = 8, .full_pages = 400, .sliding_pages = 400},
                          std::make_unique<OverlappingRunner>(std::move(fake), clock, costs));
  const auto drafter = std::make_shared<PricedDrafter>(acceptance.value_or(0), clock, costs);
  Speculation speculation;
  if (acceptance) speculation.drafter = drafter;
  Service service(executor, {.scheduler = {.max_step_tokens = 24},
                             .now_s = [&] { return clock.now_s; },
                             .speculation = speculation});
  Overlapped played;
  for (int i = 0; i < requests; ++i) {
    RecordedEvents events;
    EXPECT_TRUE(service.submit(
        {.prompt = {1, 2}, .max_tokens = 100, .end_of_sequence = EndOfSequence::ignored},
        events.events_to()));
    while (service.step()) ++played.steps;
    EXPECT_EQ(events.tokens[0].size(), 100u);
    clock.now_s += 100;  // nobody is there: no part of any step
    clock.device_s = clock.now_s;
    played.seconds -= 100;
  }
  EXPECT_EQ(service.stats().draft_fault, "");
  played.seconds += clock.now_s;
  played.asked = drafter->asked;
  return played;
}

TEST(OverlappingSteps, are_left_for_guesses_that_pay) {
  for (const double feed_s : {0.0, 0.02}) {
    for (const bool on_device : {false, true}) {
      const OverlapCosts costs{.feed_s = feed_s, .on_device = on_device};
      const Overlapped plain = play(costs, 10), guessed = play(costs, 10, 0.8);
      EXPECT_GT(guessed.asked, 500) << "fed for " << feed_s;
      EXPECT_GT(plain.seconds / guessed.seconds, on_device ? 1.4 : 1.3) << "fed for " << feed_s;
    }
  }
}

TEST(OverlappingSteps, are_not_left_for_guesses_that_pay_only_where_none_overlap) {
  // By its rows and its price alone a guess would gain; what the host does shows in every step
  // that has one.
  const Overlapped guessed = play({.host_s = 0.9, .guess_s = 0.05}, 20, 0.4);
  EXPECT_GT(guessed.asked, 0) << "it was tried";
  EXPECT_LT(guessed.asked, guessed.steps / 10);
}

TEST(OverlappingSteps, make_guessing_never_two_percent_worse_than_none) {
  std::vector<OverlapCosts> machines;
  for (const double host_s : {0.05, 0.3, 0.9}) {
    for (const double guess_s : {0.0, 0.2}) {
      for (const double feed_s : {0.0, 0.05}) {
        for (const double row_s : {0.02, 0.5}) {
          for (const bool on_device : {false, true}) {
            machines.push_back({row_s, host_s, guess_s, feed_s, on_device});
          }
        }
      }
    }
  }
  for (const OverlapCosts& costs : machines) {
    const Overlapped plain = play(costs, 10);
    for (const double acceptance : {0.0, 0.3, 0.5, 0.7, 0.9}) {
      const Overlapped guessed = play(costs, 10, acceptance);
      EXPECT_GT(plain.seconds / guessed.seconds, 0.98)
          << acceptance << ", host " << costs.host_s << ", a guess " << costs.guess_s
          << ", fed for " << costs.feed_s << ", a row " << costs.row_s << ", on device "
          << costs.on_device;
    }
  }
}

}  // namespace
}  // namespace gauntlet::engine::inline serving
