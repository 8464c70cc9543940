#include "catalog/ch08/register_pressure/pair.h"

#include <cmath>

#include "core/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch08::register_pressure {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const auto positions = static_cast<double>(knobs["positions"]);
  const auto taps = static_cast<double>(knobs["taps"]);
  return {.read_bytes = 4 * (positions + taps - 1 + taps * kFilters),
          .write_bytes = 4 * positions * kFilters,
          .flops = 2 * positions * taps * kFilters};
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "spilling → split live ranges",
      .technique = "live_range_splitting",
      .knobs = {{.name = "positions",
                 .cpu = 1 << 17,
                 .help = "outputs of each of the 80 filters; one thread each"},
                {.name = "taps", .cpu = 256, .max = 1 << 20, .help = "length of a filter"}},
      .cuda =
          lab::BackendFacts{
              .claim = "With 64 registers for 80 sums, every tap moves most sums through local "
                       "memory; two passes over 40 sums read the signal twice and spill nothing.",
              .cost = cost,
              .witness = lab::Witness::fact("local_bytes", lab::Witness::Moves::falls, 4,
                                            "local memory per thread, where spilled registers go")},
      .metrics = {{.name = "registers", .unit = "per thread"},
                  {.name = "local_bytes", .unit = "bytes per thread"}},
      .bind =
          [](lab::Binder& b) {
            const auto positions = b.knob("positions"), taps = b.knob("taps");
            return Params{
                .signal = b.input<float>("signal", positions + taps - 1, lab::Fill::uniform()),
                .filters = b.input<float>("filters", taps * kFilters, lab::Fill::uniform()),
                .out = b.output<float>("out", positions * kFilters),
                .positions = positions,
                .taps = static_cast<int>(taps)};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            // A row is one filter: two from either half of the filters, at every position.
            const auto rows = r.stratified(kFilters, 20);
            const auto values = r.rows("out", p.positions, rows, {.length = p.taps});
            const auto magnitudes = r.magnitudes("out");
            parallel_for(p.positions, [&](std::int64_t begin, std::int64_t end) {
              for (std::size_t row = 0; row < rows.size(); ++row) {
                for (std::int64_t i = begin; i < end; ++i) {
                  double sum = 0, magnitude = 0;
                  for (std::int64_t k = 0; k < p.taps; ++k) {
                    const double term =
                        double{p.signal[i + k]} * p.filters[k * kFilters + rows[row]];
                    sum += term;
                    magnitude += std::abs(term);
                  }
                  values[row * p.positions + i] = sum;
                  magnitudes[row * p.positions + i] = magnitude;
                }
              }
            });
          },
  };
}

}  // namespace gauntlet::ch08::register_pressure
