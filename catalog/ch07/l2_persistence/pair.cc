#include "catalog/ch07/l2_persistence/pair.h"

#include <cmath>
#include <span>

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch07::l2_persistence {
namespace {

constexpr double kRowBytes = 4.0 * kWidth;

lab::Cost cost(const lab::Knobs& knobs) {
  const auto rows = static_cast<double>(knobs["rows"]);
  const auto table_rows = static_cast<double>(knobs["table_rows"]);
  // Rows of the table that random lookups touch at least once.
  const double touched = -table_rows * std::expm1(-rows / table_rows);
  return {.read_bytes = rows * (kRowBytes + 4) + touched * kRowBytes,
          .write_bytes = rows * kRowBytes,
          .flops = rows * kWidth};
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "default → persisting window for the hot set",
      .technique = "l2_persistence",
      .knobs = {{.name = "rows",
                 .cuda = 1 << 20,
                 .max = 1 << 22,
                 .help = "rows of 256 bytes that stream in and out"},
                {.name = "table_rows",
                 .cuda = 96 << 10,
                 .max = 1 << 22,
                 .help = "rows of 256 bytes of the hot table; 96 Ki are 24 MiB"}},
      .cuda =
          lab::BackendFacts{
              .claim = "Lines of the table that the streams cannot displace are read from DRAM "
                       "once instead of again after each eviction; setting part of L2 aside and "
                       "giving it back is a matter of set-up and not in the time.",
              .cost = cost,
              .witness =
                  lab::Witness::counter("dram__bytes_read.sum", lab::Witness::Moves::falls, 1.1,
                                        "bytes read from DRAM: the stream, and the table again"),
              .needs = {"sm_80"}},
      .metrics = {{.name = lab::kSetupUs,
                   .unit = "us, before the clock starts",
                   .from = lab::Metric::From::outcome}},
      .bind =
          [](lab::Binder& b) {
            const auto rows = b.knob("rows"), table_rows = b.knob("table_rows");
            return Params{
                .table = b.input<float>("table", table_rows * kWidth, lab::Fill::uniform()),
                .x = b.input<float>("x", rows * kWidth, lab::Fill::uniform()),
                .index = b.input<std::int32_t>("index", rows, lab::Fill::integers(0, table_rows)),
                .out = b.output<float>("out", rows * kWidth),
                .table_rows = table_rows,
                .rows = rows};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            // One rounding per element, so every correct result has the same bits.
            const std::span<float> out = r.exact<float>("out");
            parallel_for(p.rows, [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t row = begin; row < end; ++row) {
                const float* entry = p.table + std::int64_t{p.index[row]} * kWidth;
                for (std::int64_t i = 0; i < kWidth; ++i) {
                  out[row * kWidth + i] = p.x[row * kWidth + i] + entry[i];
                }
              }
            });
          },
  };
}

}  // namespace gauntlet::ch07::l2_persistence
