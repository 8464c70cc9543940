#include "catalog/ch07/async_prefetch/pair.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch07::async_prefetch {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const auto lookups = static_cast<double>(knobs["lookups"]);
  const auto touched = std::min(lookups, static_cast<double>(knobs["table_rows"]));
  return {.read_bytes = 4 * lookups + 4 * kWidth * touched,
          .write_bytes = 4 * lookups,
          .flops = 2 * kWidth * lookups};
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "load on use → prefetched ahead",
      .technique = "prefetching",
      .knobs = {{.name = "table_rows",
                 .cpu = 1 << 21,
                 .cuda = 1 << 22,
                 .max = 1 << 24,
                 .help = "rows of 64 bytes; several times the last-level cache"},
                {.name = "lookups",
                 .cpu = 1 << 17,
                 .cuda = 1 << 22,
                 .max = 1 << 26,
                 .help = "rows looked up, in random order without repeats"}},
      .cpu =
          lab::BackendFacts{
              .claim = "A row asked for 16 lookups ahead arrives while others are summed; without "
                       "that, the reorder buffer holds only a few misses at a time.",
              .cost = cost,
              .witness = lab::Witness::none(
                  "perf's portable events count prefetched and waited-for misses alike, and cycles "
                  "would only repeat the time")},
      .cuda =
          lab::BackendFacts{
              .claim = "Rows copied to shared memory three steps ahead keep more bytes in flight "
                       "per thread than loads that are waited for.",
              .cost = cost,
              .witness = lab::Witness::counter("smsp__inst_executed_op_global_ld.sum",
                                               lab::Witness::Moves::falls, 1.5,
                                               "loads that a thread waits for; prefetches are "
                                               "cp.async"),
              .needs = {"sm_80"}},
      .bind =
          [](lab::Binder& b) {
            const auto table_rows = b.knob("table_rows"), lookups = b.knob("lookups");
            return Params{
                .table = b.input<float>("table", table_rows * kWidth, lab::Fill::uniform()),
                .weight = b.input<float>("weight", kWidth, lab::Fill::uniform()),
                .index =
                    b.input<std::int32_t>("index", lookups, lab::Fill::permutation(table_rows)),
                .out = b.output<float>("out", lookups),
                .table_rows = table_rows,
                .lookups = lookups};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const std::span<double> out = r.values("out", {.length = kWidth});
            const std::span<double> norms = r.norms("out");
            parallel_for(p.lookups, [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t i = begin; i < end; ++i) {
                const float* row = p.table + std::int64_t{p.index[i]} * kWidth;
                double sum = 0, squares = 0;
                for (int j = 0; j < kWidth; ++j) {
                  const double term = static_cast<double>(row[j]) * p.weight[j];
                  sum += term;
                  squares += term * term;
                }
                out[i] = sum;
                norms[i] = std::sqrt(squares);
              }
            });
          },
  };
}

}  // namespace gauntlet::ch07::async_prefetch
