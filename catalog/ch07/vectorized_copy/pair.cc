#include "catalog/ch07/vectorized_copy/pair.h"

#include <algorithm>

#include "lab/author/pair.h"

namespace gauntlet::ch07::vectorized_copy {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const double bytes = 4.0 * static_cast<double>(knobs["count"] * knobs["passes"]);
  return {.read_bytes = bytes, .write_bytes = bytes};
}

lab::Cost cache_cost(const lab::Knobs& knobs) {
  lab::Cost in_cache = cost(knobs);
  in_cache.level = lab::Cost::Level::l1_cache;
  return in_cache;
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "4-byte → 16-byte accesses (CPU: scalar → SIMD)",
      .technique = "vectorized_access",
      .knobs = {{.name = "count",
                 .cpu = 3072,
                 .cuda = 1 << 26,
                 .min = kShift,
                 .multiple_of = kShift,
                 .help = "floats copied; on the CPU two such arrays fit the first-level cache"},
                {.name = "passes", .cpu = 2048, .cuda = 1, .help = "copies per run"}},
      .cpu =
          lab::BackendFacts{
              .kind = lab::Kind::demonstration,
              .claim = "In cache a copy is bound by one store per cycle, so a 32-byte register "
                       "moves up to eight times as much as a word. Any compiler sees to that: the "
                       "baseline is held to single words to show what it does.",
              .cost = cache_cost,
              .witness = lab::Witness::counter("instructions", lab::Witness::Moves::falls, 4,
                                               "instructions per run")},
      .cuda =
          lab::BackendFacts{
              .claim = "With one load per thread, 4-byte accesses cannot cover the latency of "
                       "DRAM; 16-byte accesses keep four times the bytes in flight.",
              .cost = cost,
              .witness = lab::Witness::counter(
                  "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
                  lab::Witness::Moves::rises, 3.5, "sectors per global load request")},
      .bind =
          [](lab::Binder& b) {
            const auto count = b.knob("count"), passes = b.knob("passes");
            return Params{.in = b.input<float>("in", count, lab::Fill::uniform()),
                          .between = b.scratch<float>("between", passes > 1 ? count : kShift),
                          .out = b.output<float>("out", count),
                          .count = count,
                          .passes = passes};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const std::int64_t shift = kShift * (p.passes - 1) % p.count;
            std::rotate_copy(p.in, p.in + shift, p.in + p.count, r.exact<float>("out").data());
          },
  };
}

}  // namespace gauntlet::ch07::vectorized_copy
