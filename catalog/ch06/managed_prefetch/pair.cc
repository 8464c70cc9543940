#include "catalog/ch06/managed_prefetch/pair.h"

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch06::managed_prefetch {
namespace {

// Only what crosses the link counts: at its rate, writing the result to device memory is free.
lab::Cost cost(const lab::Knobs& knobs) {
  return {.read_bytes = 4 * static_cast<double>(knobs["count"]),
          .level = lab::Cost::Level::host_link};
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "page faults → prefetched managed memory",
      .technique = "managed_memory_prefetch",
      .knobs = {{.name = "count",
                 .cpu = 1 << 23,
                 .max = 1 << 26,
                 .help = "elements, 4 bytes each; 2^23 are 32 MiB of managed memory"}},
      .cuda =
          lab::BackendFacts{
              .claim =
                  "One bulk move runs at the speed of the link and the kernel then finds its pages "
                  "in place; a fault stops a warp and moves a few pages at a time.",
              .cost = cost,
              .witness = lab::Witness::counter(
                  "sm__cycles_active.avg", lab::Witness::Moves::falls, 8,
                  "cycles that an SM holds warps, nearly all of them waiting for pages in the "
                  "baseline; the bulk move, most of the other side's time, needs none")},
      .bind =
          [](lab::Binder& b) {
            const auto count = b.knob("count");
            return Params{
                .in = b.input<float>("in", count, lab::Fill::uniform(), lab::Memory::managed),
                .out = b.output<float>("out", count),
                .count = count};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto out = r.exact<float>("out");
            parallel_for(p.count, [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t i = begin; i < end; ++i) out[i] = p.in[i] + 1.0f;
            });
          },
      .managed_pages = lab::ManagedPages::on_host,
  };
}

}  // namespace gauntlet::ch06::managed_prefetch
