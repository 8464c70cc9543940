#include "study/bench/measurements.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "study/bench/decode_batch.h"
#include "study/cells.h"
#include "study/results/cell_json.h"

namespace gauntlet::study::inline bench {
namespace {

using Clock = std::chrono::steady_clock;
using Tokens = std::vector<std::int32_t>;

constexpr int kLeastRepetitions = 5;
constexpr int kMostRepetitions = 60;
constexpr std::int64_t kSweepTokens = 8;

std::span<const std::int32_t> first_of(const Tokens& text, std::int64_t count) {
  return {text.data(), static_cast<std::size_t>(std::min(count, std::ssize(text)))};
}

/// Prompts, or decodes from forks of contexts, one repetition at a time.
class Repeater {
 public:
  Repeater(const Workbench& bench, engine::Executor& executor, const engine::SpeedTest& test)
      : test_(test), meter_(executor), contexts_(bench, executor, test.batch) {}

  /// Ready, and warm.
  Expected<void> prepare() {
    const auto ready = is_decode() ? contexts_.fill(test_.context) : meter_.prepare(test_, {});
    if (!ready) return ready;
    const auto warm = next();
    if (!warm) return warm.error();
    return {};
  }
  Expected<engine::SpeedSample> next() {
    if (!is_decode()) return meter_.measure();
    if (forked_tokens_ + test_.tokens >= kForkTokens) forks_.reset();
    if (!forks_) {
      auto forks = contexts_.fork(test_.batch);
      if (!forks) return forks.error();
      forks_ = std::move(*forks);
      forked_tokens_ = 1;
    }
    forked_tokens_ += test_.tokens;
    return forks_->sample(test_.tokens);
  }

 private:
  bool is_decode() const { return test_.kind == engine::SpeedKind::decode; }

  engine::SpeedTest test_;
  engine::SpeedMeter meter_;
  DecodeBatch contexts_;
  std::unique_ptr<DecodeBatch> forks_;
  std::int64_t forked_tokens_ = 0;
};

/// Repetitions of one speed test on one stack.
Expected<RepeatedTest> repeat(const Workbench& bench, engine::Executor& executor,
                              const engine::SpeedTest& test, double seconds) {
  Repeater repeater(bench, executor, test);
  if (const auto ready = repeater.prepare(); !ready) return ready.error();
  std::vector<double> ms;
  engine::SpeedSample last;
  for (const auto start = Clock::now(); std::ssize(ms) < kMostRepetitions;) {
    const double passed = std::chrono::duration<double>(Clock::now() - start).count();
    if (std::ssize(ms) >= kLeastRepetitions && passed > seconds) break;
    if (bench.is_cancelled()) return Error{"interrupted"};
    const auto sample = repeater.next();
    if (!sample) return sample.error();
    ms.push_back(1e3 * sample->seconds);
    last = *sample;
  }
  const auto limit = engine::limit_of(engine::work_of(test, executor.config()), last.bytes,
                                      executor.plan(), bench.limits(executor).rates);
  const auto layer_steps = static_cast<double>(last.steps * executor.config().num_layers);
  RepeatedTest repeated{
      .batch = test.batch,
      .context = test.context,
      .tokens = test.tokens,
      .ms = std::move(ms),
      .limit_ms = {},
      .bound_by = limit.bound_by,
      .experts_per_layer = static_cast<double>(last.active_experts) / layer_steps};
  if (!limit.bound_by.empty()) repeated.limit_ms = 1e3 * limit.seconds;
  return repeated;
}

/// No two duels take their turns in the same order.
std::uint64_t fresh_seed() { return std::random_device()(); }

struct Executors {
  std::shared_ptr<engine::Executor> a, b;
};

/// Both sides' executors, with fewer sequences where so many do not fit in memory.
Expected<Executors> fit(Workbench& bench, Sizes& sizes, const Sides& sides) {
  constexpr std::int64_t kFewest = 8;
  while (true) {
    const auto a = bench.executor(sides.a, study_room(sizes));
    const auto b = a ? bench.executor(sides.b, study_room(sizes)) : a;
    if (a && b) return Executors{*a, *b};
    if (sizes.most_sequences <= kFewest) return b.error();
    sizes = halved(std::move(sizes));
  }
}

}  // namespace

Expected<Duel> measure_duel(Workbench& bench, const Sizes& sizes, const Sides& sides,
                            double seconds) {
  Sizes fitting = sizes;
  auto both = fit(bench, fitting, sides);
  if (!both) return both.error();
  return duel(bench, *both->a, *both->b, layer_workloads(fitting),
              {.seconds = seconds, .least_blocks = sizes.least_blocks, .seed = fresh_seed()});
}

Expected<ServeFigures> measure_saturation(Workbench& bench, const Sizes& sizes) {
  const OptionIds on = bench.ladder().all();
  const auto executor = bench.executor(on, study_room(sizes));
  if (!executor) return executor.error();
  const auto requests = plan_requests(sizes.mix, sizes.requests, 0, bench.text());
  const Stack stack = bench.ladder().stack(on);
  const ServeSide side{**executor, stack.serving};
  if (const auto warm = serve(bench, side, requests); !warm) return warm.error();
  const auto outcome = serve(bench, side, requests);
  if (!outcome) return outcome.error();
  return figures_of(*outcome);
}

namespace {

Expected<double> saturation_of(const Journal& journal) {
  const auto cell = read_cell<ServeFigures>(journal, keys::kSaturation);
  if (!cell) return cell.error();
  if (!*cell) return Error{"what the stack can serve at most is not known"};
  return (*cell)->requests_per_s;
}

}  // namespace

Expected<ServeDuel> measure_serve_duel(Workbench& bench, const Journal& journal, const Sizes& sizes,
                                       const Sides& sides, double seconds) {
  constexpr double kOverload = 1.5;
  const auto saturation = saturation_of(journal);
  if (!saturation) return saturation.error();
  const auto on_a = bench.executor(sides.a, study_room(sizes));
  if (!on_a) return on_a.error();
  const auto on_b = bench.executor(sides.b, study_room(sizes));
  if (!on_b) return on_b.error();
  const int blocks = std::max(3, sizes.least_blocks / 2);
  const auto fitting = static_cast<std::int64_t>(*saturation * seconds / (4 * blocks));
  const auto requests =
      plan_requests(sizes.mix, std::clamp(fitting, sizes.requests / 4, sizes.requests),
                    kOverload * *saturation, bench.text());
  const Stack a = bench.ladder().stack(sides.a), b = bench.ladder().stack(sides.b);
  return serve_duel(bench, {{**on_a, a.serving}, {**on_b, b.serving}}, requests,
                    {.seconds = seconds, .least_blocks = blocks, .seed = fresh_seed()});
}

Expected<RepeatedTest> measure_batch(Workbench& bench, const Sizes& sizes, std::int64_t batch,
                                     double seconds) {
  const engine::SpeedTest test{.batch = batch, .context = sizes.context, .tokens = kSweepTokens};
  const auto executor = bench.executor(bench.ladder().all(), study_room(sizes));
  if (!executor) return executor.error();
  return repeat(bench, **executor, test, seconds);
}

Expected<RepeatedTest> measure_prompts(Workbench& bench, const Sizes& sizes, const Prompts& prompts,
                                       double seconds) {
  const auto [length, batch] = prompts;
  if (length > bench.model().max_positions) {
    return Error{
        fmt::format("{} has {} positions", bench.model().name, bench.model().max_positions)};
  }
  const auto executor = bench.executor(bench.ladder().all(), study_room(sizes));
  if (!executor) return executor.error();
  return repeat(bench, **executor,
                {.kind = engine::SpeedKind::prefill, .batch = batch, .tokens = length}, seconds);
}

Expected<StepSamples> measure_context(Workbench& bench, const Sizes& sizes, const Prompts& contexts,
                                      double seconds) {
  const auto [context, batch] = contexts;
  const StepBudget budget{.seconds = seconds};
  const auto positions = [&](std::int64_t of) { return of + budget.most + 1; };
  const std::int64_t most = bench.model().max_positions;
  if (positions(context) > most) {
    return Error{fmt::format("{} has {} positions", bench.model().name, most)};
  }
  // One room for all contexts where there is memory for it, and then one executor.
  std::int64_t longest = context;
  for (const std::int64_t other : sizes.contexts) {
    if (positions(other) <= most) longest = std::max(longest, other);
  }
  const std::int64_t widest = *std::ranges::max_element(sizes.context_batches);
  auto executor =
      bench.executor(bench.ladder().all(), DecodeBatch::room(widest, positions(longest)));
  if (!executor) {
    executor = bench.executor(bench.ladder().all(), DecodeBatch::room(batch, positions(context)));
  }
  if (!executor) return executor.error();
  DecodeBatch sequences(bench, **executor, batch);
  if (const auto filled = sequences.fill(context); !filled) return filled.error();
  auto ms = time_steps(bench, sequences, budget);
  if (!ms) return ms.error();
  return StepSamples{.context = context, .batch = batch, .ms = std::move(*ms)};
}

Expected<PrecisionTest> measure_precision(Workbench& bench, const Sizes& sizes, const OptionIds& on,
                                          double seconds) {
  OptionIds all = bench.ladder().all();
  for (const OptionIds& point : precision_points(bench.ladder())) {
    for (const std::string& id : point) all.erase(id);
  }
  all.insert(on.begin(), on.end());
  const auto executor = bench.executor(all, study_room(sizes));
  if (!executor) return executor.error();
  const auto scored = score_text(bench, **executor, sizes);
  if (!scored) return scored.error();
  auto speed =
      repeat(bench, **executor, {.batch = 1, .context = sizes.context, .tokens = 16}, seconds);
  if (!speed) return speed.error();
  return PrecisionTest{.speed = std::move(*speed),
                       .score = *scored,
                       .on = on,
                       .weight_bytes = (*executor)->weight_bytes()};
}

Expected<LoadTest> measure_load(Workbench& bench, const Journal& journal, const Sizes& sizes,
                                double of_saturation, double seconds) {
  const auto saturation = saturation_of(journal);
  if (!saturation) return saturation.error();
  const OptionIds on = bench.ladder().all();
  const auto executor = bench.executor(on, study_room(sizes));
  if (!executor) return executor.error();
  const double per_second = of_saturation * *saturation;
  const auto count = std::clamp(static_cast<std::int64_t>(per_second * seconds), sizes.requests / 2,
                                std::int64_t{4096});
  const Stack stack = bench.ladder().stack(on);
  const auto outcome = serve(bench, {**executor, stack.serving},
                             plan_requests(sizes.mix, count, per_second, bench.text()));
  if (!outcome) return outcome.error();
  return LoadTest{.of_saturation = of_saturation,
                  .figures = {.offered_per_s = per_second, .served = figures_of(*outcome)}};
}

Expected<RouterLoads> measure_router(Workbench& bench, const Sizes& sizes) {
  const auto executor = bench.executor(bench.ladder().all(), study_room(sizes));
  if (!executor) return executor.error();
  return study_router(bench, **executor, first_of(bench.text(), sizes.router_tokens));
}

Expected<TimeSplits> measure_time(Workbench& bench, const Sizes& sizes) {
  const auto executor = bench.executor(bench.ladder().all(), study_room(sizes));
  if (!executor) return executor.error();
  TimeSplits splits;
  for (const std::int64_t batch : {std::int64_t{1}, sizes.most_sequences}) {
    auto split =
        split_time(bench, **executor, {.batch = batch, .context = sizes.context, .steps = 32});
    if (!split) return split.error();
    splits.push_back(std::move(*split));
  }
  return splits;
}

Expected<CounterValues> measure_counters(Workbench& bench, const Sizes& sizes,
                                         lab::ProfileLevel level) {
  const auto backend = bench.is_gpu() ? lab::BackendKind::cuda : lab::BackendKind::cpu;
  const auto profiler = lab::make_profiler(backend);
  if (!profiler) return profiler.error();
  constexpr std::int64_t kSteps = 8, kMostPasses = 64;
  const auto executor = bench.executor(
      bench.ladder().all(), DecodeBatch::room(1, sizes.context + kSteps * (kMostPasses + 1)));
  if (!executor) return executor.error();
  DecodeBatch batch(bench, **executor, 1);
  if (const auto filled = batch.fill(sizes.context); !filled) return filled.error();
  Expected<double> ran = 0.0;
  const auto work = [&] {
    for (std::int64_t i = 0; i < kSteps && ran; ++i) ran = batch.step_ms();
  };
  const auto counters = (*profiler)->collect(lab::profile_metrics(level, backend), work);
  if (!counters) return counters.error();
  if (!ran) return ran.error();
  return CounterValues{.steps = kSteps, .counters = *counters};
}

}  // namespace gauntlet::study::inline bench
