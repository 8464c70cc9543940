#include "catalog/ch07/streaming_stores/pair.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch07::streaming_stores {
namespace {

constexpr double kRowBytes = 4.0 * kWidth;

lab::Cost cost(const lab::Knobs& knobs) {
  const auto rows = static_cast<double>(knobs["rows"]);
  const auto table_rows = static_cast<double>(knobs["table_rows"]);
  // Rows of the table that random lookups touch at least once.
  const double touched = -table_rows * std::expm1(-rows / table_rows);
  return {.read_bytes = 4 * rows + touched * kRowBytes, .write_bytes = rows * kRowBytes};
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "write-allocate → streaming/non-temporal stores",
      .technique = "streaming_stores",
      .knobs = {{.name = "rows",
                 .cpu = 1 << 19,
                 .cuda = 1 << 20,
                 .max = 1 << 22,
                 .help = "rows of 256 bytes that are looked up and written"},
                {.name = "table_rows",
                 .cpu = 2 << 10,
                 .cuda = 96 << 10,
                 .max = 1 << 22,
                 .help = "rows of 256 bytes of the table, meant to stay in cache (L2)"}},
      .cpu =
          lab::BackendFacts{
              .claim = "A non-temporal store writes a full line without reading it first and "
                       "leaves the table in cache.",
              .cost = cost,
              .witness = lab::Witness::counter("cache-misses", lab::Witness::Moves::falls, 1.2,
                                               "lines fetched, those about to be overwritten "
                                               "among them")},
      .cuda =
          lab::BackendFacts{
              .claim = "Lines written with an evict-first hint leave L2 before those of the table, "
                       "which is then read from DRAM once.",
              .cost = cost,
              .witness =
                  lab::Witness::counter("dram__bytes_read.sum", lab::Witness::Moves::falls, 1.2,
                                        "bytes read from DRAM, nearly all of them the table's")},
      .bind =
          [](lab::Binder& b) {
            const auto rows = b.knob("rows"), table_rows = b.knob("table_rows");
            return Params{
                .table = b.input<float>("table", table_rows * kWidth, lab::Fill::uniform()),
                .index = b.input<std::int32_t>("index", rows, lab::Fill::integers(0, table_rows)),
                .out = b.output<float>("out", rows * kWidth),
                .table_rows = table_rows,
                .rows = rows};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const std::span<float> out = r.exact<float>("out");
            parallel_for(p.rows, [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t row = begin; row < end; ++row) {
                std::copy_n(p.table + std::int64_t{p.index[row]} * kWidth, kWidth,
                            out.data() + row * kWidth);
              }
            });
          },
  };
}

}  // namespace gauntlet::ch07::streaming_stores
