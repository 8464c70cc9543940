#include "catalog/ch07/tma_copy/pair.h"

#include <algorithm>

#include "lab/author/pair.h"

namespace gauntlet::ch07::tma_copy {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const double bytes = 4.0 * static_cast<double>(knobs["count"]);
  return {.read_bytes = bytes, .write_bytes = bytes};
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "per-thread copies → 1-D bulk copies",
      .technique = "tma_bulk_copy",
      .knobs = {{.name = "count",
                 .cuda = 1 << 26,
                 .min = 4,
                 .max = 1 << 27,
                 .multiple_of = 4,
                 .help = "words to copy; bulk copies move multiples of 16 bytes"}},
      .cuda =
          lab::BackendFacts{
              .claim = "One thread moves a tile of 4 KiB with two instructions and no registers; "
                       "where per-thread copies already reach the DRAM limit, as on Hopper, the "
                       "instructions are all that is saved.",
              .cost = cost,
              .witness = lab::Witness::counter("smsp__inst_executed_op_global_ld.sum",
                                               lab::Witness::Moves::falls, 10,
                                               "load instructions executed by warps")},
      .bind =
          [](lab::Binder& b) {
            const auto count = b.knob("count");
            return Params{.in = b.input<float>("in", count, lab::Fill::uniform()),
                          .out = b.output<float>("out", count),
                          .count = count};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            std::copy_n(p.in, p.count, r.exact<float>("out").data());
          },
  };
}

}  // namespace gauntlet::ch07::tma_copy
