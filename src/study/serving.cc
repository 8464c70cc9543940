#include "study/serving.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "core/check.h"
#include "core/random.h"
#include "engine/serving/service.h"
#include "lab/measure/turns.h"
#include "stats/median.h"

namespace gauntlet::study {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kSeed = 0x5EED0F5E12F1CE00;

/// One run of the service, fed by the clock.
class Feed {
 public:
  Feed(const Workbench& bench, const ServeSide& side, const std::vector<PlannedRequest>& requests)
      : bench_(bench),
        requests_(requests),
        service_(side.executor, side.policy.service()),
        guesses_(side.policy.guesses),
        last_token_s_(requests.size()) {}

  Expected<ServeOutcome> run() {
    start_ = Clock::now();
    while (finished_ < requests_.size()) {
      if (bench_.is_cancelled()) return Error{"interrupted"};
      if (const auto submitted = submit_due(); !submitted) return submitted.error();
      if (service_.step()) {
        note_queue();
      } else if (next_ < requests_.size()) {
        const double left = requests_[next_].at_s - passed_s();
        if (left > 0) std::this_thread::sleep_for(std::chrono::duration<double>(left));
      }
    }
    outcome_.seconds = passed_s();
    if (guesses_ != Guesses::none) outcome_.speculation = service_.stats().speculation;
    if (steps_ > 0) outcome_.mean_queue = queued_ / static_cast<double>(steps_);
    return std::move(outcome_);
  }

 private:
  double passed_s() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  Expected<void> submit_due() {
    for (; next_ < requests_.size() && requests_[next_].at_s <= passed_s(); ++next_) {
      const std::size_t index = next_;
      const auto id = service_.submit(
          {.prompt = requests_[index].prompt,
           .max_tokens = requests_[index].max_tokens,
           .end_of_sequence = engine::EndOfSequence::ignored},
          {.on_token =
               [this, index](const engine::TokenEvent&) {
                 note_token(index);
                 return engine::Verdict::go_on;
               },
           .on_finish = [this,
                         index](const engine::FinishEvent& event) { note_finish(index, event); }});
      if (!id) return id.error();
    }
    return {};
  }

  void note_token(std::size_t index) {
    const double now = passed_s();
    if (last_token_s_[index] == 0) {
      outcome_.first_token_ms.push_back(1e3 * (now - requests_[index].at_s));
    } else {
      outcome_.between_token_ms.push_back(1e3 * (now - last_token_s_[index]));
    }
    last_token_s_[index] = now;
  }

  void note_finish(std::size_t index, const engine::FinishEvent& event) {
    ++finished_;
    outcome_.answer_ms.push_back(1e3 * (passed_s() - requests_[index].at_s));
    outcome_.output_tokens += event.output_tokens;
    outcome_.prompt_tokens += event.prompt_tokens;
    outcome_.reused_tokens += event.reused_tokens;
  }

  /// Requests that have come and still wait for their first token.
  void note_queue() {
    const auto waiting = static_cast<std::int64_t>(next_ - outcome_.first_token_ms.size());
    outcome_.max_queue = std::max(outcome_.max_queue, waiting);
    queued_ += static_cast<double>(waiting);
    ++steps_;
  }

  const Workbench& bench_;
  const std::vector<PlannedRequest>& requests_;
  engine::Service service_;
  const Guesses guesses_;
  std::vector<double> last_token_s_;  // 0: none yet
  Clock::time_point start_;
  std::size_t next_ = 0;
  std::size_t finished_ = 0;
  double queued_ = 0;
  std::int64_t steps_ = 0;
  ServeOutcome outcome_;
};

}  // namespace

std::vector<PlannedRequest> plan_requests(const RequestMix& mix, std::int64_t count,
                                          double per_second,
                                          const std::vector<std::int32_t>& text) {
  const std::int64_t longest = mix.shared_tokens + mix.own_tokens[1];
  check(std::ssize(text) > longest, "the text is too short for these prompts");
  Random random(kSeed);
  const auto between = [&](const std::int64_t(&range)[2]) {
    return range[0] + static_cast<std::int64_t>(
                          random.next_below(static_cast<std::uint64_t>(range[1] - range[0] + 1)));
  };
  const auto piece = [&](std::int64_t tokens) {
    const auto at = static_cast<std::int64_t>(
        random.next_below(static_cast<std::uint64_t>(std::ssize(text) - tokens)));
    return std::vector<std::int32_t>(text.begin() + at, text.begin() + at + tokens);
  };
  const std::vector<std::int32_t> shared = piece(mix.shared_tokens);
  std::vector<PlannedRequest> requests;
  double at = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    PlannedRequest request{.at_s = at, .prompt = {}, .max_tokens = between(mix.output_tokens)};
    if (i % 2 == 0) request.prompt = shared;
    const auto own = piece(between(mix.own_tokens) + (i % 2 == 0 ? 0 : mix.shared_tokens / 2));
    request.prompt.insert(request.prompt.end(), own.begin(), own.end());
    requests.push_back(std::move(request));
    // The gap of a Poisson process: exponential, from a uniform number that is never 0.
    const double unit = (static_cast<double>(random.next() >> 11) + 1) * 0x1p-53;
    if (per_second > 0) at -= std::log(unit) / per_second;
  }
  return requests;
}

Expected<ServeOutcome> serve(const Workbench& bench, const ServeSide& side,
                             const std::vector<PlannedRequest>& requests) {
  return Feed(bench, side, requests).run();
}

double percentile(std::vector<double> values, double part) {
  return values.empty() ? 0 : stats::quantile(values, part);
}

ServeFigures figures_of(const ServeOutcome& o) {
  const auto both = [](const std::vector<double>& ms) {
    return Percentiles{.p50 = percentile(ms, 0.5), .p95 = percentile(ms, 0.95)};
  };
  const std::int64_t requests = std::ssize(o.first_token_ms);
  return {.seconds = o.seconds,
          .requests = requests,
          .output_tokens = o.output_tokens,
          .prompt_tokens = o.prompt_tokens,
          .reused_tokens = o.reused_tokens,
          .tok_s = static_cast<double>(o.output_tokens) / o.seconds,
          .requests_per_s = static_cast<double>(requests) / o.seconds,
          .ttft_ms = both(o.first_token_ms),
          .tpot_ms = both(o.between_token_ms),
          .answer_ms = both(o.answer_ms),
          .mean_queue = o.mean_queue,
          .max_queue = o.max_queue,
          .speculation = o.speculation};
}

Expected<ServeDuel> serve_duel(const Workbench& bench, const ServeSides& sides,
                               const std::vector<PlannedRequest>& requests,
                               const DuelBudget& budget) {
  ServeDuel result{.metrics = {{.name = "makespan"},
                               {.name = "first_token_p50"},
                               {.name = "answer_p50"},
                               {.name = "between_tokens_p95", .beside = true}},
                   .a = {},
                   .b = {},
                   .conditions = lab::Conditions()};
  Random random(budget.seed);
  const auto take_round = [&]() -> Expected<bool> {
    std::vector<stats::Block> blocks(result.metrics.size(), {.ns = {{0, 0}, {0, 0}}});
    const auto kept = lab::take_block(
        2, random,
        [&](std::size_t side, int half) -> Expected<double> {
          auto outcome = serve(bench, side == 0 ? sides.a : sides.b, requests);
          if (!outcome) return outcome.error();
          const double ms[] = {1e3 * outcome->seconds, percentile(outcome->first_token_ms, 0.5),
                               percentile(outcome->answer_ms, 0.5),
                               percentile(outcome->between_token_ms, 0.95)};
          for (std::size_t m = 0; m < blocks.size(); ++m) {
            blocks[m].ns[side][static_cast<std::size_t>(half)] = 1e6 * ms[m];
          }
          const double ns = 1e9 * outcome->seconds;
          (side == 0 ? result.a : result.b) = figures_of(*outcome);
          return ns;
        },
        [&] { return bench.read_sensors(); }, *result.conditions);
    if (!kept) return kept.error();
    if (!*kept) return false;
    for (std::size_t m = 0; m < blocks.size(); ++m) {
      result.metrics[m].blocks.push_back(std::move(blocks[m]));
    }
    return true;
  };
  if (const auto taken = take_rounds(budget, *result.conditions, take_round); !taken) {
    return taken.error();
  }
  return result;
}

}  // namespace gauntlet::study
