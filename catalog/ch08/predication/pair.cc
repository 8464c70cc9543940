#include "catalog/ch08/predication/pair.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch08::predication {
namespace {

float cutoff(const lab::Knobs& knobs) { return static_cast<float>(knobs["cutoff_percent"]) / 100; }

/// Share of random pairs in the unit cube that are closer than the cutoff (holds up to a distance
/// of 1).
double share_inside(double r) {
  using std::numbers::pi;
  return r * r * r * (pi * 4 / 3 + r * (-pi * 3 / 2 + r * (8.0 / 5 - r / 6)));
}

lab::Cost cost(const lab::Knobs& knobs) {
  const auto targets = static_cast<double>(knobs["targets"]);
  const auto sources = static_cast<double>(knobs["sources"]);
  constexpr double kDistanceFlops = 8, kFieldFlops = 14;
  return {.read_bytes = 12 * targets + 16 * sources,
          .write_bytes = 12 * targets,
          .flops = targets * sources * (kDistanceFlops + kFieldFlops * share_inside(cutoff(knobs))),
          .level = lab::Cost::Level::cache};
}

void field(const Params& p, std::int64_t target, double* values, double* magnitudes) {
  const double cutoff2 = p.cutoff2;
  double sum[3] = {}, magnitude[3] = {};
  for (std::int64_t j = 0; j < p.num_sources; ++j) {
    double d[3], r2 = 0;
    for (int axis = 0; axis < 3; ++axis) {
      d[axis] = double{p.sources[4 * j + axis]} - p.targets[axis * p.num_targets + target];
      r2 += d[axis] * d[axis];
    }
    if (r2 >= cutoff2) continue;
    const double common = p.sources[4 * j + 3] * (cutoff2 + 2 * r2) / (r2 + kSoftening2);
    for (int axis = 0; axis < 3; ++axis) {
      sum[axis] += common * (cutoff2 - r2) * (cutoff2 - r2) * d[axis];
      // cutoff² - r² cancels near the cutoff, so its terms count apart.
      magnitude[axis] += std::abs(common * (cutoff2 + r2) * (cutoff2 + r2) * d[axis]);
    }
  }
  const double scale = 1 / (cutoff2 * cutoff2 * cutoff2);
  for (int axis = 0; axis < 3; ++axis) {
    values[axis] = sum[axis] * scale;
    magnitudes[axis] = magnitude[axis] * scale;
  }
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "branch per element → predicated select",
      .technique = "predication",
      .knobs = {{.name = "targets",
                 .cpu = 512,
                 .cuda = 1 << 18,
                 .max = std::int64_t{1} << 36,
                 .help = "points at which the field is wanted"},
                {.name = "sources", .cpu = 2048, .cuda = 1024, .help = "points that cause it"},
                {.name = "cutoff_percent",
                 .cpu = 66,
                 .max = 100,
                 .help = "range of the interaction, in percent of the box's edge; 66 takes in half "
                         "of all pairs, and far from that a branch is easy to predict"}},
      .cpu =
          lab::BackendFacts{
              .claim = "A branch that goes either way half of the time is mispredicted half of "
                       "the time; a select has nothing to predict, and the loop can use vectors.",
              .cost = cost,
              .witness = lab::Witness::counter("branch-misses", lab::Witness::Moves::falls, 4,
                                               "mispredicted branches")},
      .cuda =
          lab::BackendFacts{
              .claim = "When the lanes of a warp disagree the body is issued anyway; a select "
                       "saves the branch and the reconvergence, a few instructions of thirty, so "
                       "little is to be expected.",
              .cost = cost,
              .witness = lab::Witness::counter("smsp__thread_inst_executed_per_inst_executed.ratio",
                                               lab::Witness::Moves::rises, 1.2,
                                               "lanes active per issued instruction")},
      .metrics = {{.name = "pairs",
                   .unit = "per second",
                   .better = lab::Metric::Better::higher,
                   .from = lab::Metric::From::rate,
                   .amount =
                       [](const lab::Knobs& k) {
                         return static_cast<double>(k["targets"]) *
                                static_cast<double>(k["sources"]);
                       }}},
      .bind =
          [](lab::Binder& b) {
            const auto targets = b.knob("targets"), sources = b.knob("sources");
            const float reach = cutoff(b.knobs());
            return Params{
                .targets = b.input<float>("targets", 3 * targets, lab::Fill::uniform(0, 1)),
                .sources = b.input<float>("sources", 4 * sources, lab::Fill::uniform(0, 1)),
                .out = b.output<float>("out", 3 * targets),
                .num_targets = targets,
                .num_sources = sources,
                .cutoff2 = reach * reach};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            constexpr std::int64_t kChecked = 8192;
            const auto rows =
                r.stratified(p.num_targets, std::max<std::int64_t>(1, p.num_targets / kChecked));
            const auto values = r.rows("out", 3, rows, {.length = p.num_sources});
            const auto magnitudes = r.magnitudes("out");
            parallel_for(
                static_cast<std::int64_t>(rows.size()),
                [&](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t i = begin; i < end; ++i) {
                    field(p, rows[i], &values[3 * i], &magnitudes[3 * i]);
                  }
                },
                64);
          },
  };
}

}  // namespace gauntlet::ch08::predication
