#include "catalog/ch06/shared_stencil/pair.h"

#include <cmath>

#include "core/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch06::shared_stencil {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const auto count = static_cast<double>(knobs["count"]);
  return {.read_bytes = 4 * (count + 2 * kRadius),
          .write_bytes = 4 * count,
          .flops = 2 * count * kTaps};
}

void reference(const Params& p, lab::Reference& r) {
  const auto rows = r.stratified(p.count / kRow, 8);
  const auto values = r.rows("out", kRow, rows, {.length = kTaps});
  const auto magnitudes = r.magnitudes("out");
  parallel_for(
      static_cast<std::int64_t>(rows.size()),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t at = begin * kRow; at < end * kRow; ++at) {
          const float* in = p.in + rows[at / kRow] * kRow + at % kRow;
          double sum = 0, magnitude = 0;
          for (int tap = 0; tap < kTaps; ++tap) {
            const double term = double{weight(tap)} * in[tap];
            sum += term;
            magnitude += std::abs(term);
          }
          values[at] = sum;
          magnitudes[at] = magnitude;
        }
      },
      16);
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "re-read neighbours from global → stage in shared memory",
      .technique = "shared_memory_staging",
      .knobs = {{.name = "count",
                 .cpu = 1 << 25,
                 .min = kRow,
                 .max = std::int64_t{1} << 28,
                 .multiple_of = kRow,
                 .help = "outputs of a 33-tap filter"}},
      .cuda =
          lab::BackendFacts{
              .claim =
                  "Staging replaces 33 global load requests per warp by one or two; L1 already "
                  "catches the re-reads, so what is left to gain is its work per request.",
              .cost = cost,
              .witness =
                  lab::Witness::counter("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
                                        lab::Witness::Moves::falls, 8, "global load requests")},
      .bind =
          [](lab::Binder& b) {
            const auto count = b.knob("count");
            return Params{.in = b.input<float>("in", count + 2 * kRadius, lab::Fill::uniform()),
                          .out = b.output<float>("out", count),
                          .count = count};
          },
      .reference = reference,
  };
}

}  // namespace gauntlet::ch06::shared_stencil
