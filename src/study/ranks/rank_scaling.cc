#include "study/ranks/rank_scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "core/os/threads.h"
#include "core/random.h"
#include "stats/median.h"
#include "study/ranks/rank_crew.h"

namespace gauntlet::study::inline ranks {
namespace {

using engine::RankCounters;
using engine::SpeedKind;
using engine::SpeedTest;

/// Between two orders a crew may wait as long as the others take.
constexpr double kPatience_s = 3600;
constexpr std::int64_t kChunk = 512;

struct Sample {
  double tokens_per_s = 0;
  double waiting = 0;
  double sent_bytes_per_token = 0;
};

struct Side {
  engine::Mesh mesh;
  std::unique_ptr<RankCrew> crew;
  std::unique_ptr<engine::SpeedMeter> meter;  // of its rank 0's thread
  std::vector<Sample> samples;
  std::int64_t weight_bytes = 0;

  /// What was prepared goes before the executor that holds it, which ends with a failed order.
  Expected<void> run(const RankCrew::Order& order) {
    return crew->run([&](Executor& executor, RankPulse& pulse) {
      Expected<void> done;
      try {
        done = order(executor, pulse);
      } catch (const std::exception& fault) {
        done = Error{fault.what()};
      }
      if (!done) meter.reset();
      return done;
    });
  }

  ~Side() {
    if (!crew) return;
    const auto ended = crew->run([this](Executor&, RankPulse&) {
      meter.reset();
      return Expected<void>();
    });
    if (!ended) crew.reset();
  }
};

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Expected<void> prepare(Side& side, const SpeedTest& test) {
  return side.run([&](Executor& executor, RankPulse& pulse) -> Expected<void> {
    if (!side.meter) side.meter = std::make_unique<engine::SpeedMeter>(executor);
    if (auto ready = side.meter->prepare(test, {}); !ready) return ready;
    if (const auto warm = side.meter->measure(); !warm) return warm.error();
    pulse.beat();
    for (const RankCounters& rank : pulse.counters()) {
      side.weight_bytes = std::max(side.weight_bytes, rank.weight_bytes);
    }
    return {};
  });
}

Expected<void> take_sample(Side& side, const SpeedTest& test) {
  return side.run([&](Executor&, RankPulse& pulse) -> Expected<void> {
    pulse.beat();
    const auto before = pulse.counters();
    const auto begin = std::chrono::steady_clock::now();
    const auto measured = side.meter->measure();
    if (!measured) return measured.error();
    const double all_s = seconds_since(begin);
    pulse.beat();
    const auto after = pulse.counters();
    Sample sample{.tokens_per_s = static_cast<double>(test.all_tokens()) / measured->seconds};
    for (std::size_t rank = 0; rank < after.size(); ++rank) {
      sample.waiting += (after[rank].waited_s - before[rank].waited_s) / all_s /
                        static_cast<double>(after.size());
      sample.sent_bytes_per_token +=
          static_cast<double>(after[rank].sent_bytes - before[rank].sent_bytes) /
          static_cast<double>(test.all_tokens());
    }
    side.samples.push_back(sample);
    return {};
  });
}

template <class Value>
stats::Interval interval_of(const std::vector<Sample>& samples, const Value& value) {
  std::vector<double> values;
  for (std::size_t i = 0; i < samples.size(); ++i) values.push_back(value(i));
  return stats::median_interval(std::move(values));
}

RankScalePoint point_of(const Side& side, const Side& base, const SpeedTest& test) {
  const auto& own = side.samples;
  RankScalePoint point{.ranks = side.mesh.ranks(),
                       .mesh = side.mesh.text(),
                       .test = test,
                       .weight_bytes = side.weight_bytes};
  point.tokens_per_s = interval_of(own, [&](std::size_t i) { return own[i].tokens_per_s; });
  point.speedup = interval_of(
      own, [&](std::size_t i) { return own[i].tokens_per_s / base.samples[i].tokens_per_s; });
  const double more = static_cast<double>(side.mesh.ranks()) / base.mesh.ranks();
  point.efficiency = point.speedup.times(1 / more);
  point.waiting = interval_of(own, [&](std::size_t i) { return own[i].waiting; }).value;
  point.sent_bytes_per_token =
      interval_of(own, [&](std::size_t i) { return own[i].sent_bytes_per_token; }).value;
  return point;
}

}  // namespace

std::string name_of(const SpeedTest& test) {
  if (test.kind == SpeedKind::prefill) return fmt::format("prompt of {}", test.tokens);
  return fmt::format("decode, batch {}", test.batch);
}

std::vector<SpeedTest> scale_tests(const model::ModelConfig& config) {
  const std::int64_t context = std::min<std::int64_t>(256, config.max_positions / 4);
  return {{.kind = SpeedKind::prefill, .batch = 1, .context = 0, .tokens = context},
          {.kind = SpeedKind::decode, .batch = 1, .context = context, .tokens = 16},
          {.kind = SpeedKind::decode, .batch = 8, .context = context, .tokens = 16}};
}

Expected<RankScaling> measure_scaling(const model::ModelWeights& weights, const RankScalePlan& plan,
                                      const ScaleWatcher& watcher) {
  RankScaling scaling{.model = weights.config.name,
                      .sums = plan.sums == engine::RankSums::reduced ? "reduced" : "ordered",
                      .cpus = static_cast<int>(allowed_cpus().size()),
                      .rounds = plan.rounds};
  const int most = *std::ranges::max_element(plan.ranks);
  scaling.threads =
      plan.options.threads > 0 ? plan.options.threads : std::max(1, scaling.cpus / most);
  std::int64_t sequences = 1, positions = 1;
  for (const SpeedTest& test : plan.tests) {
    sequences = std::max(sequences, 2 * test.batch);
    positions = std::max(positions, test.positions());
  }
  const auto show = [&](const std::string& what) {
    if (watcher.show) watcher.show(what);
  };
  std::vector<std::unique_ptr<Side>> sides;
  for (const int ranks : plan.ranks) {
    const auto mesh = engine::mesh_for(weights.config, ranks);
    if (!mesh) return mesh.error();
    engine::RankConfig config{.mesh = *mesh, .sums = plan.sums, .timeout_s = kPatience_s};
    config.cpu.options = plan.options;
    config.cpu.options.threads = scaling.threads;
    config.cpu.max_sequences = sequences;
    config.cpu.max_tokens = positions;
    config.cpu.max_batch_tokens = kChunk;
    show(fmt::format("packing {} ranks, {}", ranks, mesh->text()));
    auto crew = RankCrew::make(weights, std::move(config));
    if (!crew) return crew.error();
    sides.push_back(std::make_unique<Side>());
    sides.back()->mesh = *mesh;
    sides.back()->crew = std::move(*crew);
  }
  Random random(static_cast<std::uint64_t>(most));
  for (const SpeedTest& test : plan.tests) {
    for (const auto& side : sides) {
      side->samples.clear();
      if (const auto ready = prepare(*side, test); !ready) return ready.error();
    }
    std::vector<std::size_t> order(sides.size());
    std::iota(order.begin(), order.end(), 0);
    for (int round = 0; round < plan.rounds; ++round) {
      show(fmt::format("{}, round {} of {}", name_of(test), round + 1, plan.rounds));
      for (std::size_t i = order.size(); i > 1; --i)
        std::swap(order[i - 1], order[random.next() % i]);
      for (const std::size_t i : order) {
        if (watcher.is_interrupted && watcher.is_interrupted()) return Error{"interrupted"};
        if (const auto taken = take_sample(*sides[i], test); !taken) return taken.error();
      }
    }
    for (const auto& side : sides) scaling.points.push_back(point_of(*side, *sides.front(), test));
  }
  return scaling;
}

}  // namespace gauntlet::study::inline ranks
