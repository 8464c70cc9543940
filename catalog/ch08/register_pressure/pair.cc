#include "catalog/ch08/register_pressure/pair.h"

#include <cmath>
#include <vector>

#include "core/os/threads.h"
#include "lab/author/pair.h"
#include "lab/author/product.h"

namespace gauntlet::ch08::register_pressure {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const auto positions = static_cast<double>(knobs["positions"]);
  const auto taps = static_cast<double>(knobs["taps"]);
  return {.read_bytes = 4 * (positions + taps - 1 + taps * kFilters),
          .write_bytes = 4 * positions * kFilters,
          .flops = 2 * positions * taps * kFilters};
}

void reference(const Params& p, lab::Reference& r) {
  // A row is one filter at every position: one of each pass of the optimized side.
  const auto rows = r.stratified(kFilters, 96);
  const auto values = r.rows("out", p.positions, rows, {.length = p.taps});
  const auto norms = r.norms("out");
  parallel_for(p.positions, [&](std::int64_t begin, std::int64_t end) {
    for (std::size_t row = 0; row < rows.size(); ++row) {
      double* value = values.data() + row * p.positions;
      double* norm = norms.data() + row * p.positions;
      for (std::int64_t k = 0; k < p.taps; ++k) {
        const double factor = p.filters[k * kFilters + rows[row]];
        for (std::int64_t i = begin; i < end; ++i) {
          const double term = factor * p.signal[i + k];
          value[i] += term;
          norm[i] += term * term;
        }
      }
      for (std::int64_t i = begin; i < end; ++i) norm[i] = std::sqrt(norm[i]);
    }
  });

  // Σ_i w_i Σ_k signal[i + k]·filter[k] = Σ_k filter[k]·(Σ_i w_i·signal[i + k]): what is in
  // brackets is the same for all filters.
  const lab::RowSums sums = r.row_sums("out");
  std::vector<double> weights2(sums.weights.size());
  for (std::size_t i = 0; i < weights2.size(); ++i) {
    weights2[i] = sums.weights[i] * sums.weights[i];
  }
  std::vector<lab::WeightedSums> at_tap(static_cast<std::size_t>(p.taps));
  parallel_for(
      p.taps,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t k = begin; k < end; ++k) {
          at_tap[k] = lab::weighted_sums(p.signal + k, sums.weights, weights2);
        }
      },
      2);
  for (int filter = 0; filter < kFilters; ++filter) {
    for (std::int64_t k = 0; k < p.taps; ++k) {
      const double factor = p.filters[k * kFilters + filter];
      sums.sums[filter] += factor * at_tap[k].sum;
      sums.squares[filter] += factor * factor * at_tap[k].squares;
    }
  }
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "spilling → split live ranges",
      .technique = "live_range_splitting",
      .knobs = {{.name = "positions",
                 .cpu = 1 << 16,
                 .help = "outputs of each of the 288 filters; one thread each"},
                {.name = "taps", .cpu = 256, .max = 1 << 20, .help = "length of a filter"}},
      .cuda =
          lab::BackendFacts{
              .kind = lab::Kind::demonstration,
              .claim = "A thread has 255 registers for its 288 sums, so every tap moves dozens of "
                       "them through local memory; three passes over 96 sums read the signal three "
                       "times and spill nothing.",
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
      .reference = reference,
  };
}

}  // namespace gauntlet::ch08::register_pressure
