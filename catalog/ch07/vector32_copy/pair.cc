#include "catalog/ch07/vector32_copy/pair.h"

#include <algorithm>

#include "lab/author/pair.h"

namespace gauntlet::ch07::vector32_copy {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const double bytes = 4.0 * static_cast<double>(knobs["count"]);
  return {.read_bytes = bytes, .write_bytes = bytes};
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "16-byte → 32-byte accesses",
      .technique = "vectorized_access",
      .knobs = {{.name = "count", .cuda = 1 << 26, .help = "floats copied"}},
      .cuda =
          lab::BackendFacts{
              .claim = "A 32-byte access keeps twice the bytes in flight per thread, which "
                       "counts where 16-byte accesses at full occupancy do not yet fill DRAM.",
              .cost = cost,
              .witness = lab::Witness::counter(
                  "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
                  lab::Witness::Moves::rises, 1.8, "sectors per global load request")},
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

}  // namespace gauntlet::ch07::vector32_copy
