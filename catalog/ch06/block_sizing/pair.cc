#include "catalog/ch06/block_sizing/pair.h"

#include <cmath>

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch06::block_sizing {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const auto count = static_cast<double>(knobs["count"]);
  const auto terms = static_cast<double>(knobs["terms"]);
  return {.read_bytes = 4 * count,
          .write_bytes = 4 * count,
          .flops = 2 * count * (terms - 1),
          .level = lab::Cost::Level::cache};
}

/// x^n by squaring: std::pow takes a second for the default count.
double power(double x, int n) {
  double result = 1;
  for (; n > 0; n /= 2, x *= x) {
    if (n % 2 == 1) result *= x;
  }
  return result;
}

void reference(const Params& p, lab::Reference& r) {
  const auto values = r.values("out", {.length = 2});
  const auto norms = r.norms("out");
  parallel_for(p.count, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const double x = p.x[i];
      const double value = (1 - power(x, p.terms)) / (1 - x);
      values[i] = value;
      // Each step of Horner's rule rounds, and the next shrinks by |x| ≤ 1/2 what was lost before.
      norms[i] = value / std::sqrt(1 - x * x);
    }
  });
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "blocks off the warp size → multiples of 32",
      .technique = "warp_multiple_blocks",
      .knobs = {{.name = "count",
                 .cpu = 1 << 22,
                 .max = std::int64_t{1} << 27,
                 .help = "elements, one thread each"},
                {.name = "terms",
                 .cpu = 1024,
                 .min = 2,
                 .max = 1 << 20,
                 .help = "terms per element; few make it a copy, where idle lanes cost little"}},
      .cuda =
          lab::BackendFacts{
              .kind = lab::Kind::demonstration,
              .claim =
                  "A block of 100 threads still takes four warps, and 28 of its 128 lanes never "
                  "work; arithmetic-bound kernels lose that share, a copy would not.",
              .cost = cost,
              .witness = lab::Witness::counter(
                  "smsp__average_thread_inst_executed_per_inst_executed.ratio",
                  lab::Witness::Moves::rises, 1.2, "active lanes per instruction")},
      .bind =
          [](lab::Binder& b) {
            const auto count = b.knob("count");
            return Params{.x = b.input<float>("x", count, lab::Fill::uniform(-0.5f, 0.5f)),
                          .out = b.output<float>("out", count),
                          .count = count,
                          .terms = static_cast<int>(b.knob("terms"))};
          },
      .reference = reference,
  };
}

}  // namespace gauntlet::ch06::block_sizing
