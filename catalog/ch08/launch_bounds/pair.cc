#include "catalog/ch08/launch_bounds/pair.h"

#include <cmath>

#include "core/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch08::launch_bounds {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const double elements = static_cast<double>(knobs["rows"] * kColumns);
  return {.read_bytes = 4 * elements + 8 * static_cast<double>(kColumns),
          .write_bytes = 4 * elements,
          .flops = 8 * elements};
}

void normalize(const Params& p, std::int64_t row, double* values, double* magnitudes) {
  const float* in = p.in + row * kColumns;
  double sum = 0, absolute = 0, squares = 0;
  for (std::int64_t i = 0; i < kColumns; ++i) {
    sum += in[i];
    absolute += std::abs(in[i]);
  }
  const double mean = sum / kColumns;
  for (std::int64_t i = 0; i < kColumns; ++i) squares += (in[i] - mean) * (in[i] - mean);
  const double scale = 1 / std::sqrt(squares / kColumns + kEpsilon);
  for (std::int64_t i = 0; i < kColumns; ++i) {
    values[i] = (in[i] - mean) * scale * p.gamma[i] + p.beta[i];
    // The mean cancels: its error follows the mean of |x|, not the mean itself.
    magnitudes[i] = (std::abs(in[i]) + absolute / kColumns) * scale * std::abs(p.gamma[i]) +
                    std::abs(p.beta[i]);
  }
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
            const auto rows = r.stratified(p.rows, 16);
            const auto values = r.rows("out", kColumns, rows, {.length = kColumns});
            const auto magnitudes = r.magnitudes("out");
            parallel_for(
                static_cast<std::int64_t>(rows.size()),
                [&](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t i = begin; i < end; ++i) {
                    normalize(p, rows[i], &values[i * kColumns], &magnitudes[i * kColumns]);
                  }
                },
                1);
          },
  };
}

}  // namespace gauntlet::ch08::launch_bounds
