#include "study/bench/guessed_speed.h"

#include <fmt/format.h>

#include <chrono>

#include "stats/interval_json.h"
#include "stats/median.h"

namespace gauntlet::study::inline bench {
namespace {

using json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr int kMostPairs = 40;

/// One repetition, without guesses and with them.
struct GuessPair {
  double plain_tokens_per_s = 0;
  double tokens_per_s = 0;
  std::int64_t tokens = 0;  // that steps made with guesses could bring
  engine::SpeculationCounts guessed;
};

/// The first pair warms up, and is not counted.
Expected<GuessedRow> repeat_pairs(GuessedRow row, const std::string& what,
                                  const GuessRepetitions& repetitions,
                                  const std::function<Expected<GuessPair>()>& measure) {
  std::vector<double> plain, guessed, ratios;
  double all = 0;
  auto start = Clock::now();
  for (bool is_warm = false; row.repetitions < kMostPairs; is_warm = true) {
    const double passed = std::chrono::duration<double>(Clock::now() - start).count();
    if (row.repetitions >= repetitions.least && passed > repetitions.seconds) break;
    if (repetitions.is_interrupted()) return Error{"interrupted", ErrorKind::check_failed};
    repetitions.show(is_warm ? fmt::format("{}: repetition {}", what, row.repetitions + 1)
                             : what + ": warming up");
    const auto pair = measure();
    if (!pair) return pair.error();
    if (!is_warm) {
      start = Clock::now();
      continue;
    }
    ++row.repetitions;
    plain.push_back(pair->plain_tokens_per_s);
    guessed.push_back(pair->tokens_per_s);
    ratios.push_back(pair->tokens_per_s / pair->plain_tokens_per_s);
    all += static_cast<double>(pair->tokens);
    row.guessed.steps += pair->guessed.steps;
    row.guessed.drafted += pair->guessed.drafted;
    row.guessed.accepted += pair->guessed.accepted;
  }
  row.plain_tokens_per_s = stats::median_interval(plain);
  row.tokens_per_s = stats::median_interval(guessed);
  row.ratio = stats::median_interval(ratios);
  row.tokens_a_step = all / (all - static_cast<double>(row.guessed.accepted));
  return row;
}

Expected<GuessPair> pair_of(engine::Executor& executor, const GuessPlan& plan,
                            const engine::ClosedLoop& loop) {
  engine::ServiceConfig service{.scheduler = {.max_queue = loop.requests}};
  const auto plain = engine::run_closed_loop(executor, service, loop, {});
  if (!plain) return plain.error();
  if (plan.oracle) plan.oracle->know(plain->texts);
  service.speculation = plan.speculation;
  const auto guessed = engine::run_closed_loop(executor, service, loop, {});
  if (!guessed) return guessed.error();
  if (guessed->texts != plain->texts) {
    return Error{engine::kOtherTokens, ErrorKind::check_failed};
  }
  return GuessPair{.plain_tokens_per_s = plain->tokens_per_s,
                   .tokens_per_s = guessed->tokens_per_s,
                   .tokens = (loop.streams + loop.requests) * (loop.output_tokens - 1),
                   .guessed = guessed->guessed};
}

}  // namespace

std::string GuessPlan::describe() const {
  if (!oracle_tokens_a_step) return speculation.describe();
  return fmt::format("an ORACLE that knows the answers, {:.2f} tokens a step, at the cost of {}",
                     *oracle_tokens_a_step,
                     oracle->name() == "oracle" ? "nothing" : std::string(oracle->name()));
}

json GuessedRow::to_json(const GuessPlan& plan) const {
  json oracle;
  if (plan.oracle_tokens_a_step) oracle = {{"tokens_per_step", *plan.oracle_tokens_a_step}};
  return {{"test", test},
          {"activations", activations},
          {"drafter", plan.describe()},
          {"oracle", oracle},
          {"batch", streams},
          {"context", context},
          {"tokens", tokens},
          {"tok_s", stats::to_json(tokens_per_s)},
          {"plain_tok_s", stats::to_json(plain_tokens_per_s)},
          {"ratio", stats::to_json(ratio)},
          {"tokens_per_step", tokens_a_step},
          {"drafted", guessed.drafted},
          {"accepted", guessed.accepted},
          {"repetitions", repetitions}};
}

Expected<GuessedRow> measure_guesses(engine::Executor& executor, const GuessPlan& plan,
                                     const engine::DecodeTest& test,
                                     const GuessRepetitions& repetitions) {
  engine::GuessMeter meter(executor, {.speculation = plan.speculation, .oracle = plan.oracle},
                           test.streams);
  const std::int64_t tokens = test.output_tokens - 1;
  return repeat_pairs({.test = "decode",
                       .activations = executor.plan().activations(),
                       .streams = test.streams,
                       .context = test.prompt_tokens,
                       .tokens = tokens},
                      fmt::format("decode {} x {} after {}, with guesses and without", test.streams,
                                  tokens, test.prompt_tokens),
                      repetitions, [&]() -> Expected<GuessPair> {
                        const auto sample = meter.measure(test);
                        if (!sample) return sample.error();
                        const auto all = static_cast<double>(test.timed_tokens());
                        return GuessPair{.plain_tokens_per_s = all / sample->plain_s,
                                         .tokens_per_s = all / sample->guessed_s,
                                         .tokens = test.timed_tokens(),
                                         .guessed = sample->guessed};
                      });
}

Expected<GuessedRow> measure_guesses(engine::Executor& executor, const GuessPlan& plan,
                                     const engine::ClosedLoop& loop,
                                     const GuessRepetitions& repetitions) {
  return repeat_pairs(
      {.test = "closed loop",
       .activations = executor.plan().activations(),
       .streams = loop.streams,
       .context = loop.prompt_tokens,
       .tokens = loop.output_tokens},
      fmt::format("closed loop of {} streams, with guesses and without", loop.streams), repetitions,
      [&] { return pair_of(executor, plan, loop); });
}

}  // namespace gauntlet::study::inline bench
