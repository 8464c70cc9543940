#include "study/bench/energy_use.h"

#include <chrono>
#include <functional>
#include <memory>
#include <set>

#include "study/bench/decode_batch.h"
#include "study/serving.h"

namespace gauntlet::study::inline bench {
namespace {

using Clock = std::chrono::steady_clock;

/// GPUs update their counters every tenth of a second or so.
constexpr double kStretchS = 0.6;

struct Use {
  double joules = 0;
  double seconds = 0;
  std::int64_t tokens = 0;
};

/// `work` again and again, which returns the tokens it made. What forking costs now and then is
/// part of the joules and not of the tokens: a percent at most.
Expected<Use> use_of(const Workbench& bench, const std::function<Expected<std::int64_t>()>& work) {
  const auto meter = bench.energy();
  if (!meter) return meter.error();
  if (const auto warm = work(); !warm) return warm.error();
  const auto before = (*meter)->joules();
  if (!before) return before.error();
  Use use;
  Expected<double> after = *before;
  for (const auto start = Clock::now(); use.seconds < kStretchS;) {
    if (bench.is_cancelled()) return Error{"interrupted"};
    const auto tokens = work();
    if (!tokens) return tokens.error();
    use.tokens += *tokens;
    after = (*meter)->joules();
    if (!after) return after.error();
    use.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  }
  use.joules = *after - *before;
  return use;
}

EnergyPoint point_of(const std::string& name, std::int64_t batch, const Use& use) {
  return {.name = name,
          .batch = batch,
          .joules_per_token = use.joules / static_cast<double>(use.tokens),
          .watts = use.joules / use.seconds,
          .tokens = use.tokens};
}

using EnergyPoints = std::vector<EnergyPoint>;

Expected<EnergyPoints> decoding(const Workbench& bench, engine::Executor& executor,
                                const Sizes& sizes) {
  EnergyPoints points;
  for (const std::int64_t batch : std::set<std::int64_t>{1, sizes.most_sequences}) {
    DecodeBatch contexts(bench, executor, batch);
    if (const auto filled = contexts.fill(sizes.context); !filled) return filled.error();
    std::unique_ptr<DecodeBatch> forks;
    std::int64_t forked = 0;
    const auto work = [&]() -> Expected<std::int64_t> {
      if (forked == 0) {
        forks.reset();
        auto made = contexts.fork(batch);
        if (!made) return made.error();
        forks = std::move(*made);
      }
      const auto step = forks->step_ms();
      if (!step) return step.error();
      forked = (forked + 1) % (kForkTokens - 1);
      return batch;
    };
    const auto use = use_of(bench, work);
    if (!use) return use.error();
    points.push_back(point_of("decode_" + std::to_string(batch), batch, *use));
  }
  return points;
}

Expected<EnergyPoints> serving(const Workbench& bench, const ServeSide& side, const Sizes& sizes) {
  const auto requests = plan_requests(sizes.mix, sizes.requests, 0, bench.text());
  const auto work = [&]() -> Expected<std::int64_t> {
    const auto outcome = serve(bench, side, requests);
    if (!outcome) return outcome.error();
    return outcome->output_tokens;
  };
  const auto use = use_of(bench, work);
  if (!use) return use.error();
  return EnergyPoints{point_of("served", sizes.most_served, *use)};
}

}  // namespace

Expected<EnergyUse> measure_energy(Workbench& bench, const Sizes& sizes, int layer) {
  const auto meter = bench.energy();
  if (!meter) return meter.error();
  const OptionIds on = bench.ladder().up_to(layer);
  const auto executor = bench.executor(on, study_room(sizes));
  if (!executor) return executor.error();
  const Stack stack = bench.ladder().stack(on);
  auto points = bench.ladder().stage_of(layer) == Stage::serving
                    ? serving(bench, {**executor, stack.serving}, sizes)
                    : decoding(bench, **executor, sizes);
  if (!points) return points.error();
  return EnergyUse{.source = (*meter)->source(), .points = std::move(*points)};
}

}  // namespace gauntlet::study::inline bench
