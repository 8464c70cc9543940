#include "catalog/ch08/launch_bounds/pair.h"

#include <cmath>
#include <numeric>
#include <vector>

#include "core/os/threads.h"
#include "lab/author/pair.h"
#include "lab/author/product.h"

namespace gauntlet::ch08::launch_bounds {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const double elements = static_cast<double>(knobs["rows"] * kColumns);
  return {.read_bytes = 4 * elements + 8 * static_cast<double>(kColumns),
          .write_bytes = 4 * elements,
          .flops = 8 * elements};
}

// The longest chain of roundings that leads to a result: 16 words in a thread, ten steps of
// shuffles, mean, difference, scale and the three operations after it.
constexpr std::int64_t kRoundings = 32;

struct Row {
  double mean = 0;
  double scale = 0;
  // What the mean's rounding grows with: terms of either sign leave more than their small sum says.
  double mean_square = 0;
};

Row statistics(const float* in) {
  // Independent partial sums, so that they fit vectors.
  constexpr std::int64_t kLanes = 8;
  static_assert(kColumns % kLanes == 0);
  double sums[kLanes] = {}, squares[kLanes] = {};
  for (std::int64_t i = 0; i < kColumns; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const double x = in[i + lane];
      sums[lane] += x;
      squares[lane] += x * x;
    }
  }
  const double mean = std::accumulate(sums, sums + kLanes, 0.0) / kColumns;
  const double square = std::accumulate(squares, squares + kLanes, 0.0) / kColumns;
  return {.mean = mean,
          .scale = 1 / std::sqrt(square - mean * mean + kEpsilon),
          .mean_square = mean * mean + square / kColumns};
}

void normalize(const Params& p, std::int64_t row, double* values, double* norms) {
  const float* in = p.in + row * kColumns;
  const Row of = statistics(in);
  for (std::int64_t i = 0; i < kColumns; ++i) {
    const double gain = of.scale * p.gamma[i], x = in[i] * gain, mean = of.mean * gain;
    values[i] = x - mean + p.beta[i];
    norms[i] = std::sqrt(x * x + of.mean_square * gain * gain + double{p.beta[i]} * p.beta[i]);
  }
}

/// Σ w·(scale·gamma·(x - mean) + beta) = scale·(Σ (w·gamma)·x - mean·Σ w·gamma) + Σ w·beta.
void sum_rows(const Params& p, const lab::RowSums& sums) {
  std::vector<double> gains(kColumns), gains2(kColumns);
  double gain = 0, gain2 = 0, shift = 0, shift2 = 0;
  for (std::int64_t i = 0; i < kColumns; ++i) {
    gains[i] = sums.weights[i] * p.gamma[i];
    gains2[i] = gains[i] * gains[i];
    gain += gains[i];
    gain2 += gains2[i];
    shift += sums.weights[i] * p.beta[i];
    shift2 += sums.weights[i] * p.beta[i] * sums.weights[i] * p.beta[i];
  }
  parallel_for(
      p.rows,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          const float* in = p.in + row * kColumns;
          const Row of = statistics(in);
          const lab::WeightedSums x = lab::weighted_sums(in, gains, gains2);
          sums.sums[row] = of.scale * (x.sum - of.mean * gain) + shift;
          sums.squares[row] = of.scale * of.scale * (x.squares + of.mean_square * gain2) + shift2;
        }
      },
      2);
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "compiler's choice → `__launch_bounds__` fitted",
      .technique = "launch_bounds",
      .knobs = {{.name = "rows",
                 .cpu = 4096,
                 .max = 1 << 24,
                 .help = "rows of 16384 words to normalise; one block each"}},
      .cuda =
          lab::BackendFacts{
              .claim = "Left alone, the compiler takes more than 32 registers and one block of "
                       "1024 threads fills an SM, which idles at every barrier; asked for two "
                       "blocks it finds 32 without spilling, and one loads while the other "
                       "reduces.",
              .cost = cost,
              .witness = lab::Witness::fact("blocks_per_sm", lab::Witness::Moves::rises, 2,
                                            "resident blocks that the register count allows")},
      .metrics = {{.name = "registers", .unit = "per thread"},
                  {.name = "blocks_per_sm",
                   .unit = "blocks",
                   .better = lab::Metric::Better::higher}},
      .bind =
          [](lab::Binder& b) {
            const auto rows = b.knob("rows");
            return Params{
                .in = b.input<float>("in", rows * kColumns, lab::Fill::uniform()),
                .gamma = b.input<float>("gamma", kColumns, lab::Fill::uniform(0.5f, 1.5f)),
                .beta = b.input<float>("beta", kColumns, lab::Fill::uniform()),
                .out = b.output<float>("out", rows * kColumns),
                .rows = rows};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto rows = r.stratified(p.rows, 256);
            const auto values = r.rows("out", kColumns, rows, {.length = kRoundings});
            const auto norms = r.norms("out");
            parallel_for(
                static_cast<std::int64_t>(rows.size()),
                [&](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t i = begin; i < end; ++i) {
                    normalize(p, rows[i], &values[i * kColumns], &norms[i * kColumns]);
                  }
                },
                1);
            sum_rows(p, r.row_sums("out"));
          },
  };
}

}  // namespace gauntlet::ch08::launch_bounds
