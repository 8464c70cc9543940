#include "catalog/ch06/warp_divergence/pair.h"

#include <cmath>

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch06::warp_divergence {
namespace {

// Operations of CUDA 13's own code, a fused multiply-add taken as two: 12 of sinhf, 25 of log1pf,
// 34 of asinhf, 56 of erfcf.
constexpr double kFlops = (12 + 25 + 34 + 56) / 4.0;

// The largest of the maximum errors that the CUDA C++ Programming Guide states: 3 ulp of sinhf, 1
// of log1pf, 3 of asinhf, 4 of erfcf.
constexpr double kUlps = 4;

lab::Cost cost(const lab::Knobs& knobs) {
  const auto count = static_cast<double>(knobs["count"]);
  return {.read_bytes = 4 * count, .write_bytes = 4 * count, .flops = kFlops * count};
}

double apply(std::int64_t kind, double x) {
  switch (kind) {
    case 0:
      return std::sinh(x);
    case 1:
      return std::log1p(x);
    case 2:
      return std::asinh(x);
    default:
      return std::erfc(x);
  }
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "divergent branches → uniform per warp",
      .technique = "warp_uniform_branches",
      .knobs = {{.name = "count",
                 .cpu = 1 << 24,
                 .min = kTile,
                 .max = std::int64_t{1} << 27,
                 .multiple_of = kTile,
                 .help = "elements"}},
      .cuda =
          lab::BackendFacts{
              .claim =
                  "A warp whose lanes need four functions runs all four, each for a quarter of its "
                  "lanes; given elements of one kind it runs one.",
              .cost = cost,
              .witness = lab::Witness::counter(
                  "smsp__average_thread_inst_executed_per_inst_executed.ratio",
                  lab::Witness::Moves::rises, 1.5, "active lanes per instruction")},
      .bind =
          [](lab::Binder& b) {
            const auto count = b.knob("count");
            return Params{.x = b.input<float>("x", count, lab::Fill::uniform(0.0f, 4.0f)),
                          .out = b.output<float>("out", count),
                          .count = count};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto out = r.values("out", {.ulps = kUlps});
            parallel_for(p.count, [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t i = begin; i < end; ++i)
                out[i] = apply(i / kGroup % kKinds, p.x[i]);
            });
          },
  };
}

}  // namespace gauntlet::ch06::warp_divergence
