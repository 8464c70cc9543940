#include "catalog/ch04/copy_engine_collectives/pair.h"

#include <numeric>

#include "core/affine_rounds.h"
#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch04::copy_engine_collectives {

lab::Pair<Params> pair() {
  return {
      .title = "SM-driven → copy-engine-driven transfers",
      .technique = "transfer_engines",
      .knobs = {{.name = "words",
                 .cpu = 1 << 23,
                 .min = kChunks * kBlockWords,
                 .max = 1 << 27,
                 .multiple_of = kChunks * kBlockWords,
                 .help = "of 4 bytes, of each GPU's shard"},
                {.name = "gpus", .cpu = 2, .min = 2, .max = 16, .help = "that gather"}},
      .cuda =
          lab::BackendFacts{
              .claim = "Copy engines carry an all-gather between GPUs while all SMs work on what "
                       "has arrived; carried by kernels it takes some SMs, and the cache they "
                       "share, away from that.",
              // Of the first GPU, which is where the clock and the ceilings are.
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                const double bytes = 4 * static_cast<double>(k["words"] * k["gpus"]);
                return {
                    .read_bytes = bytes, .write_bytes = bytes, .level = lab::Cost::Level::cache};
              },
              .witness = lab::Witness::fact("copies", lab::Witness::Moves::rises, 2,
                                            "copies in the graph that a run is captured to: what "
                                            "is not carried by kernels"),
              .needs = {"2 GPUs"}},
      .bind =
          [](lab::Binder& b) {
            const auto words = b.knob("words"), gpus = b.knob("gpus");
            std::vector<int> devices(static_cast<std::size_t>(gpus));
            std::iota(devices.begin(), devices.end(), 0);
            return Params{.in = b.input<std::uint32_t>("in", gpus * words, lab::Fill::bytes()),
                          .factor = b.input<std::uint32_t>("factor", kRounds, lab::Fill::bytes()),
                          .out = b.output<std::uint32_t>("out", gpus * words),
                          .words = words,
                          .devices = std::move(devices)};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            AffineRounds rounds;
            for (int round = 0; round < kRounds; ++round) rounds.add(p.factor[round]);
            const auto out = r.exact<std::uint32_t>("out");
            const auto gpus = std::ssize(p.devices);
            parallel_for(p.words, [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t i = begin; i < end; ++i) {
                std::uint32_t sum = 0;
                for (std::int64_t gpu = 0; gpu < gpus; ++gpu)
                  sum += rounds(p.in[gpu * p.words + i]);
                for (std::int64_t gpu = 0; gpu < gpus; ++gpu) {
                  out[static_cast<std::size_t>(gpu * p.words + i)] = sum;
                }
              }
            });
          },
  };
}

}  // namespace gauntlet::ch04::copy_engine_collectives
