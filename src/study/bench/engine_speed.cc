#include "study/bench/engine_speed.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "lab/profile/profiler.h"
#include "stats/interval_json.h"
#include "stats/median.h"

namespace gauntlet::study::inline bench {
namespace {

using engine::SpeedKind;
using engine::SpeedTest;
using json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

// Decode at the mean context of a loop: enough steps for a steady rate.
constexpr std::int64_t kAloneTokens = 128;
constexpr int kLoopRepetitions = 3;
constexpr double kEnoughLoopSeconds = 20;     // long loops are not repeated
constexpr std::int64_t kGuessPositions = 48;  // of one sequence, page ends included

Error interrupted() { return {"interrupted", ErrorKind::check_failed}; }

SpeedTest prefill_alone(const engine::ClosedLoop& loop) {
  return {.kind = SpeedKind::prefill, .batch = loop.streams, .tokens = loop.prompt_tokens};
}

SpeedTest decode_alone(const engine::ClosedLoop& loop) {
  const std::int64_t tokens = std::min(loop.output_tokens, kAloneTokens);
  return {.kind = SpeedKind::decode,
          .batch = loop.streams,
          .context = loop.prompt_tokens + (loop.output_tokens - tokens) / 2,
          .tokens = tokens};
}

json to_json(const std::vector<lab::KernelShare>& kernels) {
  json list = json::array();
  for (const lab::KernelShare& kernel : kernels) {
    list.push_back({{"name", kernel.name},
                    {"launches_per_step", kernel.launches_per_step},
                    {"us_per_step", kernel.us_per_step}});
  }
  return list;
}

json to_json(const SpeedRow& row) {
  const bool limited = !row.limit.bound_by.empty();
  return {{"test", engine::name_of(row.test.kind)},
          {"activations", row.activations},
          {"batch", row.test.batch},
          {"context", row.test.context},
          {"tokens", row.test.tokens},
          {"tok_s", stats::to_json(row.tokens_per_s)},
          {"repetitions", row.repetitions},
          {"bytes_per_token", row.bytes_per_token},
          {"ms_per_step", row.ms_per_step},
          {"bytes_per_step", row.bytes_per_step},
          {"experts_per_layer", row.experts_per_layer},
          {"percent_of_limit", limited ? json(row.percent_of_limit) : json()},
          {"bound_by", limited ? json(row.limit.bound_by) : json()},
          {"kernels", to_json(row.kernels)}};
}

json to_json(const LoopRow& row) {
  return {{"activations", row.activations},
          {"streams", row.loop.streams},
          {"prompt_tokens", row.loop.prompt_tokens},
          {"output_tokens", row.loop.output_tokens},
          {"requests", row.loop.requests},
          {"tok_s", stats::to_json(row.tokens_per_s)},
          {"alone_tok_s", row.alone_tokens_per_s},
          {"percent_of_alone", row.percent_of_alone},
          {"gap_us", row.gap_us ? json(*row.gap_us) : json()}};
}

class Measurement {
 public:
  Measurement(engine::Executor& executor, const SpeedPlan& plan, const SpeedWatcher& watcher,
              SpeedReport& report)
      : executor_(executor), plan_(plan), watcher_(watcher), report_(report) {
    meter_.emplace(executor);
  }

  Expected<void> run() {
    for (const SpeedTest& test : plan_.tests()) {
      auto row = measure(test);
      if (!row) return row.error();
      if (plan_.breakdown) {
        auto shares = break_down(test);
        if (!shares) return shares.error();
        row->kernels = std::move(*shares);
      }
      report_.rows.push_back(std::move(*row));
    }
    for (const engine::ClosedLoop& loop : plan_.loops) {
      auto row = measure(loop);
      if (!row) return row.error();
      report_.loops.push_back(std::move(*row));
    }
    return plan_.guesses ? guess() : Expected<void>();
  }

 private:
  std::string title(const SpeedTest& test) const {
    return fmt::format("{} {} x {} after {}, {}", engine::name_of(test.kind), test.batch,
                       test.tokens, test.context, executor_.plan().activations());
  }

  Expected<SpeedRow> measure(const SpeedTest& test) {
    const std::string what = title(test);
    const auto prepared = meter_->prepare(test, [&](std::int64_t done, std::int64_t all) {
      watcher_.show(fmt::format("{}: filling contexts, {} of {} tokens", what, done, all));
    });
    if (!prepared) return prepared.error();
    watcher_.show(fmt::format("{}: warming up", what));
    if (const auto warm = meter_->measure(); !warm) return warm.error();
    std::vector<double> speeds, bytes, step_ms;
    engine::SpeedSample last;
    const auto tokens = static_cast<double>(test.all_tokens());
    for (const auto start = Clock::now(); std::ssize(speeds) < SpeedPlan::kMostRepetitions;) {
      const double passed = std::chrono::duration<double>(Clock::now() - start).count();
      if (std::ssize(speeds) >= plan_.repetitions && passed > plan_.seconds) break;
      if (watcher_.is_interrupted()) return interrupted();
      watcher_.show(fmt::format("{}: repetition {}", what, speeds.size() + 1));
      const auto sample = meter_->measure();
      if (!sample) return sample.error();
      speeds.push_back(tokens / sample->seconds);
      bytes.push_back(sample->bytes / tokens);
      step_ms.push_back(1e3 * sample->seconds / static_cast<double>(sample->steps));
      last = *sample;
    }
    const auto steps = static_cast<double>(last.steps);
    const auto layers = static_cast<double>(executor_.config().num_layers);
    SpeedRow row{.test = test,
                 .activations = executor_.plan().activations(),
                 .tokens_per_s = stats::median_interval(speeds),
                 .bytes_per_token = stats::median(bytes),
                 .ms_per_step = stats::median(step_ms),
                 .bytes_per_step = last.bytes / steps,
                 .experts_per_layer = static_cast<double>(last.active_experts) / steps / layers,
                 .repetitions = static_cast<int>(speeds.size())};
    row.limit =
        engine::limit_of(engine::work_of(test, executor_.config()), row.bytes_per_token * tokens,
                         executor_.plan(), report_.limits.rates);
    row.percent_of_limit = 100 * row.limit.seconds * row.tokens_per_s.value / tokens;
    return row;
  }

  /// One more repetition, traced.
  Expected<std::vector<lab::KernelShare>> break_down(const SpeedTest& test) {
    watcher_.show(fmt::format("{}: tracing", title(test)));
    Expected<engine::SpeedSample> sample = engine::SpeedSample{};
    const auto trace = lab::trace_gpu([&] { sample = meter_->measure(); });
    if (!trace) return trace.error();
    if (!sample) return sample.error();
    return lab::kernel_shares(*trace, sample->steps);
  }

  /// The bare service, without HTTP. Prompts are distinct, so that its prefix cache has nothing.
  Expected<LoopRow> measure(const engine::ClosedLoop& loop) {
    const auto prefill = measure(prefill_alone(loop));
    if (!prefill) return prefill.error();
    const auto decode = measure(decode_alone(loop));
    if (!decode) return decode.error();
    std::vector<double> speeds, gaps_us;
    double measured_s = 0;
    for (int i = 0; i < kLoopRepetitions && measured_s < kEnoughLoopSeconds; ++i) {
      if (watcher_.is_interrupted()) return interrupted();
      const auto rate = engine::run_closed_loop(
          executor_, {.scheduler = {.max_queue = loop.requests}}, loop, [&](std::int64_t done) {
            watcher_.show(fmt::format("closed loop: {} of {} requests, repetition {}", done,
                                      loop.streams + loop.requests, i + 1));
          });
      if (!rate) return rate.error();
      measured_s += rate->seconds;
      speeds.push_back(rate->tokens_per_s);
      gaps_us.insert(gaps_us.end(), rate->gaps_us.begin(), rate->gaps_us.end());
    }
    LoopRow row{.loop = loop,
                .activations = executor_.plan().activations(),
                .tokens_per_s = stats::median_interval(speeds)};
    // The last step of a prompt makes the first token.
    const auto tokens = static_cast<double>(loop.streams * loop.output_tokens);
    const double prefill_s =
        static_cast<double>(loop.streams * loop.prompt_tokens) / prefill->tokens_per_s.value;
    const double decode_s =
        static_cast<double>(loop.streams * (loop.output_tokens - 1)) / decode->tokens_per_s.value;
    row.alone_tokens_per_s = tokens / (prefill_s + decode_s);
    row.percent_of_alone = 100 * row.tokens_per_s.value / row.alone_tokens_per_s;
    if (!gaps_us.empty()) row.gap_us = stats::median(gaps_us);
    return row;
  }

  GuessRepetitions repetitions() const {
    return {.least = plan_.repetitions,
            .seconds = plan_.seconds,
            .show = watcher_.show,
            .is_interrupted = watcher_.is_interrupted};
  }

  /// Decoding and closed loops once more, in turns with guesses and without.
  Expected<void> guess() {
    meter_.reset();  // its contexts hold pages
    const auto add = [&](Expected<GuessedRow> row) -> Expected<void> {
      if (!row) return row.error();
      report_.guessed.push_back(std::move(*row));
      return {};
    };
    for (const SpeedTest& test : plan_.tests()) {
      if (test.kind != SpeedKind::decode) continue;
      const auto done = add(measure_guesses(
          executor_, report_.guesses,
          engine::DecodeTest{.streams = test.batch,
                             .prompt_tokens = std::max<std::int64_t>(1, test.context),
                             .output_tokens = test.tokens + 1},
          repetitions()));
      if (!done) return done;
    }
    for (const engine::ClosedLoop& loop : plan_.loops) {
      auto few = repetitions();
      few.least = kLoopRepetitions;
      few.seconds = 0;
      const auto done = add(measure_guesses(executor_, report_.guesses, loop, few));
      if (!done) return done;
    }
    return {};
  }

  engine::Executor& executor_;
  const SpeedPlan& plan_;
  const SpeedWatcher& watcher_;
  SpeedReport& report_;
  std::optional<engine::SpeedMeter> meter_;
};

}  // namespace

std::vector<SpeedTest> SpeedPlan::tests() const {
  std::vector<SpeedTest> tests;
  const auto add = [&](SpeedKind kind, const std::vector<std::int64_t>& lengths) {
    for (const std::int64_t before : context) {
      for (const std::int64_t sequences : batch) {
        for (const std::int64_t tokens : lengths) {
          tests.push_back({.kind = kind, .batch = sequences, .context = before, .tokens = tokens});
        }
      }
    }
  };
  add(SpeedKind::prefill, prefill);
  add(SpeedKind::decode, decode);
  return tests;
}

SpeedPlan::Needs SpeedPlan::needs() const {
  Needs needs;
  std::vector<SpeedTest> all = tests();
  for (const engine::ClosedLoop& loop : loops) {
    all.push_back(prefill_alone(loop));
    all.push_back(decode_alone(loop));
    needs.sequences = std::max(needs.sequences, loop.streams);
    needs.positions = std::max(needs.positions, loop.positions());
    needs.sequence_positions =
        std::max(needs.sequence_positions, loop.prompt_tokens + loop.output_tokens);
  }
  for (const SpeedTest& test : all) {
    needs.sequences = std::max(needs.sequences, 2 * test.batch);  // contexts, and their forks
    needs.positions = std::max(needs.positions, test.positions());
    needs.sequence_positions = std::max(needs.sequence_positions, test.context + test.tokens);
  }
  if (guesses) {
    // A prompt has a token at least, and guesses have places behind the answer.
    needs.sequence_positions += kGuessPositions;
    needs.positions += needs.sequences * kGuessPositions;
  }
  return needs;
}

json SpeedReport::to_json() const {
  json row_list = json::array(), loop_list = json::array(), guessed_list = json::array();
  for (const SpeedRow& row : rows) row_list.push_back(bench::to_json(row));
  for (const LoopRow& row : loops) loop_list.push_back(bench::to_json(row));
  for (const GuessedRow& row : guessed) guessed_list.push_back(row.to_json(guesses));
  json rates;
  if (!limits.read_from.empty()) {
    rates = {{"read_from", limits.read_from},
             {"read_gb_s", limits.rates.read_bytes_per_s / 1e9},
             {"f32_gflop_s", limits.rates.f32_flops_per_s / 1e9},
             {"bf16_gflop_s", limits.rates.bf16_flops_per_s / 1e9},
             {"int8_gflop_s", limits.rates.int8_flops_per_s / 1e9}};
  }
  return {{"model", model},
          {"weight_bytes", weight_bytes},
          {"threads", threads},
          {"where", where},
          {"plans", plans},
          {"limits", rates},
          {"rows", row_list},
          {"closed_loops", loop_list},
          {"speculation", guessed_list}};
}

Expected<void> measure_speed(engine::Executor& executor, const SpeedPlan& plan,
                             const SpeedWatcher& watcher, SpeedReport& report) {
  return Measurement(executor, plan, watcher, report).run();
}

}  // namespace gauntlet::study::inline bench
