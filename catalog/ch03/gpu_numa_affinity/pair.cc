#include "catalog/ch03/gpu_numa_affinity/pair.h"

#include <algorithm>

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch03::gpu_numa_affinity {
namespace {

double bytes_of(const lab::Knobs& knobs) {
  return 8 * kRowWords * static_cast<double>(knobs["rows"]);
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "any core → cores and memory next to the GPU",
      .technique = "gpu_affinity",
      .knobs =
          {{.name = "rows", .cpu = 1 << 16, .max = 1 << 20, .help = "of 4 KiB, fed to the GPU"},
           {.name = "slot_rows",
            .cpu = 256,
            .max = 1 << 14,
            .help = "gathered before they are sent; each feeder has two slots"},
           {.name = "feeders",
            .cpu = 8,
            .max = 64,
            .help = "threads that gather, no more than either node has CPUs for"}},
      .cuda =
          lab::BackendFacts{
              .claim = "What the copy engine reads from the GPU's own node, and what the threads "
                       "that feed it tell it from there, does not cross the link between sockets. "
                       "It gains only where that link is slower than the GPU's, or busy.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                return {.read_bytes = bytes_of(k), .level = lab::Cost::Level::host_link};
              },
              .witness = lab::Witness::outcome("local_share", lab::Witness::Moves::rises, 10,
                                               "of the page-locked pages that the copy engine "
                                               "reads on the GPU's node, by move_pages()"),
              .needs = {"2 NUMA nodes", "gpu numa node"}},
      .metrics = {{.name = "feed rate",
                   .unit = "B/s",
                   .better = lab::Metric::Better::higher,
                   .from = lab::Metric::From::rate,
                   .amount = bytes_of},
                  {.name = "feeders_near",
                   .unit = "of 1 on the GPU's node, by getcpu()",
                   .better = lab::Metric::Better::higher,
                   .from = lab::Metric::From::outcome}},
      .bind =
          [](lab::Binder& b) {
            const auto rows = b.knob("rows");
            return Params{
                .table = b.input<std::uint64_t>("table", kTableRows * kRowWords, lab::Fill::bytes(),
                                                lab::Memory::pinned),
                .order = b.input<std::int32_t>("order", rows, lab::Fill::integers(0, kTableRows),
                                               lab::Memory::pinned),
                .out = b.output<std::uint64_t>("out", rows * kRowWords),
                .rows = rows,
                .slot_rows = b.knob("slot_rows"),
                .feeders = b.knob("feeders")};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto out = r.exact<std::uint64_t>("out");
            parallel_for(p.rows, [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t row = begin; row < end; ++row) {
                std::copy_n(p.table + p.order[row] * kRowWords, kRowWords,
                            out.begin() + row * kRowWords);
              }
            });
          },
  };
}

}  // namespace gauntlet::ch03::gpu_numa_affinity
