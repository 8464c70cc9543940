#include "study/measurements.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "engine/score.h"
#include "lab/statistics.h"
#include "study/cells.h"
#include "study/decode_batch.h"
#include "study/duel.h"
#include "study/router.h"
#include "study/serving.h"
#include "study/time_split.h"
#include "study/verify.h"

namespace gauntlet::study {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;
using Tokens = std::vector<std::int32_t>;

constexpr int kLeastRepetitions = 5;
constexpr int kMostRepetitions = 60;
constexpr std::int64_t kSweepTokens = 8;

std::vector<Tokens> prompts_of(const Workbench& bench, const Sizes& sizes) {
  std::vector<Tokens> prompts;
  const std::int64_t stride = std::ssize(bench.text()) / sizes.verify_prompts;
  for (std::int64_t i = 0; i < sizes.verify_prompts; ++i) {
    const auto at = bench.text().begin() + i * stride;
    prompts.emplace_back(at, at + sizes.verify_prompt_tokens);
  }
  return prompts;
}

/// The room of the layers' workloads, which is enough for verifying and scoring too.
Room layer_room(const Sizes& sizes) {
  Room room = room_for(layer_workloads(sizes));
  room.positions += sizes.verify_prompts * (sizes.verify_prompt_tokens + sizes.verify_tokens + 16);
  room.positions += sizes.score_window + 16;
  room.sequences += sizes.verify_prompts;
  room.longest = std::max(
      {room.longest, sizes.score_window + 1, sizes.verify_prompt_tokens + sizes.verify_tokens});
  return room;
}

Room serve_room(const Sizes& sizes) {
  constexpr std::int64_t kMostRunning = 64;
  const std::int64_t longest =
      2 * sizes.mix.shared_tokens + sizes.mix.own_tokens[1] + sizes.mix.output_tokens[1] + 16;
  return {
      .sequences = kMostRunning + 1, .positions = (kMostRunning + 1) * longest, .longest = longest};
}

/// One room for batches and prompts of every size, so that one executor serves them all.
Room sweep_room(const Sizes& sizes) {
  const auto most = [](const std::vector<std::int64_t>& of) {
    return *std::ranges::max_element(of);
  };
  const Room batches = DecodeBatch::room(2 * most(sizes.batches), sizes.context + 2 * kSweepTokens);
  const Room prompts =
      DecodeBatch::room(2 * most(sizes.prompt_batches), most(sizes.prompt_lengths));
  return {.sequences = std::max(batches.sequences, prompts.sequences),
          .positions = std::max(batches.positions, prompts.positions),
          .longest = std::max(batches.longest, prompts.longest)};
}

std::span<const std::int32_t> first_of(const Tokens& text, std::int64_t count) {
  return {text.data(), static_cast<std::size_t>(std::min(count, std::ssize(text)))};
}

json to_json(const GreedyRun& run) { return {{"tokens", run.tokens}, {"margins", run.margins}}; }

/// Repetitions of one speed test on one stack.
CellValue repeat(const Workbench& bench, engine::Executor& executor, const engine::SpeedTest& test,
                 double seconds) {
  engine::SpeedMeter meter(executor);
  if (const auto ready = meter.prepare(test, {}); !ready) return ready.error();
  if (const auto warm = meter.measure(); !warm) return warm.error();
  std::vector<double> ms;
  engine::SpeedSample last;
  for (const auto start = Clock::now(); std::ssize(ms) < kMostRepetitions;) {
    const double passed = std::chrono::duration<double>(Clock::now() - start).count();
    if (std::ssize(ms) >= kLeastRepetitions && passed > seconds) break;
    if (bench.is_cancelled()) return Error{"interrupted"};
    const auto sample = meter.measure();
    if (!sample) return sample.error();
    ms.push_back(1e3 * sample->seconds);
    last = *sample;
  }
  const auto limit = engine::limit_of(engine::work_of(test, executor.config()), last.bytes,
                                      executor.plan(), bench.limits(executor).rates);
  const auto steps = static_cast<double>(last.steps);
  return json{{"batch", test.batch},
              {"context", test.context},
              {"tokens", test.tokens},
              {"ms", ms},
              {"limit_ms", limit.bound_by.empty() ? json() : json(1e3 * limit.seconds)},
              {"bound_by", limit.bound_by.empty() ? json() : json(limit.bound_by)},
              {"experts_per_layer", static_cast<double>(last.active_experts) / steps /
                                        static_cast<double>(executor.config().num_layers)}};
}

Expected<engine::Score> score(const Workbench& bench, engine::Executor& executor,
                              const Sizes& sizes) {
  return engine::score_tokens(executor, first_of(bench.text(), sizes.score_tokens),
                              {.window = sizes.score_window});
}

struct Executors {
  std::shared_ptr<engine::Executor> a, b;
};

/// Both sides' executors, with fewer sequences where so many do not fit in memory.
Expected<Executors> fit(Workbench& bench, Sizes& sizes, const Sides& sides) {
  constexpr std::int64_t kFewest = 8;
  while (true) {
    const auto a = bench.executor(sides.a, layer_room(sizes));
    const auto b = a ? bench.executor(sides.b, layer_room(sizes)) : a;
    if (a && b) return Executors{*a, *b};
    if (sizes.most_sequences <= kFewest) return b.error();
    sizes.most_sequences /= 2;
  }
}

}  // namespace

CellValue measure_truth(Workbench& bench, const Sizes& sizes, const OptionIds& on) {
  const auto executor = bench.executor(on, layer_room(sizes));
  if (!executor) return executor.error();
  const auto run = greedy(**executor, prompts_of(bench, sizes), sizes.verify_tokens);
  if (!run) return run.error();
  const auto scored = score(bench, **executor, sizes);
  if (!scored) return scored.error();
  json value = to_json(*run);
  value["perplexity"] = scored->perplexity;
  value["scored_tokens"] = scored->tokens;
  return value;
}

CellValue measure_served_truth(Workbench& bench, const Sizes& sizes, const OptionIds& on) {
  const auto executor = bench.executor(on, serve_room(sizes));
  if (!executor) return executor.error();
  const auto run = served_greedy(**executor, bench.ladder().stack(on).scheduler,
                                 prompts_of(bench, sizes), sizes.verify_tokens);
  if (!run) return run.error();
  return to_json(*run);
}

CellValue measure_duel(Workbench& bench, const Sizes& sizes, const Sides& sides, double seconds) {
  Sizes fitting = sizes;
  auto both = fit(bench, fitting, sides);
  if (!both) return both.error();
  const auto fought = duel(bench, *both->a, *both->b, layer_workloads(fitting),
                           {.seconds = seconds, .least_blocks = sizes.least_blocks});
  if (!fought) return fought.error();
  return to_json(*fought);
}

CellValue measure_saturation(Workbench& bench, const Sizes& sizes) {
  const OptionIds on = bench.ladder().all();
  const auto executor = bench.executor(on, serve_room(sizes));
  if (!executor) return executor.error();
  const auto requests = plan_requests(sizes.mix, sizes.requests, 0, bench.text());
  const Stack stack = bench.ladder().stack(on);
  const ServeSide side{**executor, stack.scheduler};
  if (const auto warm = serve(bench, side, requests); !warm) return warm.error();
  const auto outcome = serve(bench, side, requests);
  if (!outcome) return outcome.error();
  return to_json(*outcome);
}

namespace {

Expected<double> saturation_of(const Journal& journal) {
  const json cell = journal.at(keys::kSaturation);
  if (!cell.is_object() || !cell.contains("requests_per_s")) {
    return Error{"what the stack can serve at most is not known"};
  }
  return cell.at("requests_per_s").get<double>();
}

}  // namespace

CellValue measure_serve_duel(Workbench& bench, const Journal& journal, const Sizes& sizes,
                             const Sides& sides, double seconds) {
  constexpr double kOverload = 1.5;
  const auto saturation = saturation_of(journal);
  if (!saturation) return saturation.error();
  const auto on_a = bench.executor(sides.a, serve_room(sizes));
  if (!on_a) return on_a.error();
  const auto on_b = bench.executor(sides.b, serve_room(sizes));
  if (!on_b) return on_b.error();
  const auto requests =
      plan_requests(sizes.mix, sizes.requests, kOverload * *saturation, bench.text());
  const Stack a = bench.ladder().stack(sides.a), b = bench.ladder().stack(sides.b);
  const auto fought =
      serve_duel(bench, {{**on_a, a.scheduler}, {**on_b, b.scheduler}}, requests,
                 {.seconds = seconds, .least_blocks = std::max(2, sizes.least_blocks / 2)});
  if (!fought) return fought.error();
  return to_json(*fought);
}

CellValue measure_batch(Workbench& bench, const Sizes& sizes, std::int64_t batch, double seconds) {
  const engine::SpeedTest test{.batch = batch, .context = sizes.context, .tokens = kSweepTokens};
  const auto executor = bench.executor(bench.ladder().all(), sweep_room(sizes));
  if (!executor) return executor.error();
  return repeat(bench, **executor, test, seconds);
}

CellValue measure_prompts(Workbench& bench, const Sizes& sizes, const Prompts& prompts,
                          double seconds) {
  const auto [length, batch] = prompts;
  if (length > bench.model().max_positions) {
    return Error{
        fmt::format("{} has {} positions", bench.model().name, bench.model().max_positions)};
  }
  const auto executor = bench.executor(bench.ladder().all(), sweep_room(sizes));
  if (!executor) return executor.error();
  return repeat(bench, **executor,
                {.kind = engine::SpeedKind::prefill, .batch = batch, .tokens = length}, seconds);
}

CellValue measure_context(Workbench& bench, const Sizes& sizes, const Prompts& contexts,
                          double seconds) {
  const auto [context, batch] = contexts;
  const StepBudget budget{.seconds = seconds};
  const std::int64_t positions = context + budget.most + 1;
  if (positions > bench.model().max_positions) {
    return Error{
        fmt::format("{} has {} positions", bench.model().name, bench.model().max_positions)};
  }
  const std::int64_t most = *std::ranges::max_element(sizes.context_batches);
  const auto executor = bench.executor(bench.ladder().all(), DecodeBatch::room(most, positions));
  if (!executor) return executor.error();
  DecodeBatch sequences(bench, **executor, batch);
  if (const auto filled = sequences.fill(context); !filled) return filled.error();
  const auto ms = time_steps(bench, sequences, budget);
  if (!ms) return ms.error();
  return json{{"context", context}, {"batch", batch}, {"ms", *ms}};
}

CellValue measure_precision(Workbench& bench, const Sizes& sizes, const OptionIds& on,
                            double seconds) {
  OptionIds all = bench.ladder().all();
  for (const OptionIds& point : precision_points(bench.ladder())) {
    for (const std::string& id : point) all.erase(id);
  }
  all.insert(on.begin(), on.end());
  const auto executor = bench.executor(all, layer_room(sizes));
  if (!executor) return executor.error();
  const auto scored = score(bench, **executor, sizes);
  if (!scored) return scored.error();
  auto value =
      repeat(bench, **executor, {.batch = 1, .context = sizes.context, .tokens = 16}, seconds);
  if (!value) return value;
  (*value)["on"] = on;
  (*value)["perplexity"] = scored->perplexity;
  (*value)["scored_tokens"] = scored->tokens;
  (*value)["weight_bytes"] = (*executor)->weight_bytes();
  return value;
}

CellValue measure_load(Workbench& bench, const Journal& journal, const Sizes& sizes,
                       double of_saturation, double seconds) {
  const auto saturation = saturation_of(journal);
  if (!saturation) return saturation.error();
  const OptionIds on = bench.ladder().all();
  const auto executor = bench.executor(on, serve_room(sizes));
  if (!executor) return executor.error();
  const double per_second = of_saturation * *saturation;
  const auto count = std::clamp(static_cast<std::int64_t>(per_second * seconds), sizes.requests / 2,
                                std::int64_t{4096});
  const Stack stack = bench.ladder().stack(on);
  const auto outcome = serve(bench, {**executor, stack.scheduler},
                             plan_requests(sizes.mix, count, per_second, bench.text()));
  if (!outcome) return outcome.error();
  json value = to_json(*outcome);
  value["of_saturation"] = of_saturation;
  value["offered_per_s"] = per_second;
  return value;
}

CellValue measure_router(Workbench& bench, const Sizes& sizes) {
  const auto executor = bench.executor(bench.ladder().all(), layer_room(sizes));
  if (!executor) return executor.error();
  return study_router(bench, **executor, first_of(bench.text(), sizes.router_tokens));
}

CellValue measure_time(Workbench& bench, const Sizes& sizes) {
  json splits = json::array();
  for (const std::int64_t batch : {std::int64_t{1}, sizes.most_sequences}) {
    const auto split = split_time(bench, bench.ladder().all(),
                                  {.batch = batch, .context = sizes.context, .steps = 32});
    if (!split) return split.error();
    splits.push_back(to_json(*split));
  }
  return splits;
}

CellValue measure_counters(Workbench& bench, const Sizes& sizes, lab::ProfileLevel level) {
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
  return json{{"steps", kSteps}, {"counters", *counters}};
}

}  // namespace gauntlet::study
