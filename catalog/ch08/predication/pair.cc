#include "catalog/ch08/predication/pair.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/os/threads.h"
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

/// Targets side by side, because one target's float64 sum has to keep its order.
constexpr std::int64_t kBlock = 256;

/// The field at targets [first, first + count), and the squared norms of its terms.
void field(const Params& p, std::int64_t first, std::int64_t count, double* values, double* norms) {
  const double cutoff2 = p.cutoff2, scale = 1 / (cutoff2 * cutoff2 * cutoff2);
  const float* x = p.targets + first;
  const float* y = p.targets + p.num_targets + first;
  const float* z = p.targets + 2 * p.num_targets + first;
  double sums[3][kBlock] = {}, squares[3][kBlock] = {};
  for (std::int64_t j = 0; j < p.num_sources; ++j) {
    const double sx = p.sources[4 * j], sy = p.sources[4 * j + 1], sz = p.sources[4 * j + 2];
    const double weight = p.sources[4 * j + 3];
    for (std::int64_t i = 0; i < count; ++i) {
      const double dx = sx - x[i], dy = sy - y[i], dz = sz - z[i];
      const double d2 = dx * dx + dy * dy + dz * dz;
      // The smaller of the two, written so that the loop can be vectorised.
      const double r2 = 0.5 * (d2 + cutoff2 - std::abs(d2 - cutoff2));
      const double rest = cutoff2 - r2;
      const double common = weight * rest * (cutoff2 + 2 * r2) / (r2 + kSoftening2);
      const double w = common * rest;
      // The difference that makes `rest` cancels near the cutoff: what its two terms lost counts
      // apart, and twice, since `rest` is squared.
      const double w2 = w * w + 4 * common * common * (cutoff2 * cutoff2 + r2 * r2);
      sums[0][i] += w * dx;
      sums[1][i] += w * dy;
      sums[2][i] += w * dz;
      squares[0][i] += w2 * dx * dx;
      squares[1][i] += w2 * dy * dy;
      squares[2][i] += w2 * dz * dz;
    }
  }
  for (std::int64_t i = 0; i < count; ++i) {
    for (int axis = 0; axis < 3; ++axis) {
      values[3 * i + axis] = sums[axis][i] * scale;
      norms[3 * i + axis] = std::sqrt(squares[axis][i]) * scale;
    }
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
                {.name = "sources", .cpu = 2048, .cuda = 256, .help = "points that cause it"},
                {.name = "cutoff_percent",
                 .cpu = 66,
                 .max = 100,
                 .help = "range of the interaction, in percent of the box's edge; 66 takes in half "
                         "of all pairs, and far from that a branch is easy to predict"}},
      .cpu =
          lab::BackendFacts{
              .claim = "A branch that goes either way half of the time is mispredicted half of "
                       "the time; a select has nothing to predict. That the loop could then use "
                       "vectors is kept out of this: both sides are scalar.",
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
            const auto values = r.values("out", {.length = p.num_sources});
            const auto norms = r.norms("out");
            const std::int64_t blocks = (p.num_targets + kBlock - 1) / kBlock;
            parallel_for(
                blocks,
                [&](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t block = begin; block < end; ++block) {
                    const std::int64_t first = block * kBlock;
                    field(p, first, std::min(kBlock, p.num_targets - first), &values[3 * first],
                          &norms[3 * first]);
                  }
                },
                2);
          },
  };
}

}  // namespace gauntlet::ch08::predication
