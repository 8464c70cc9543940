#include "catalog/labs/input_pipeline/lab.h"

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::labs::input_pipeline {
namespace {

constexpr std::int64_t kShardBlocks = 256;
constexpr std::int64_t kBlockTokens = 1 << 16;

}  // namespace

lab::Lab<Params> lab() {
  const auto shard = std::make_shared<TokenShard>(kShardBlocks, kBlockTokens);
  return {
      .title = "compressed shards on disk → batches of tokens",
      .technique = "input_path",
      .needs = {"O_DIRECT", "io_uring", "lz4"},
      .knobs = {{.name = "blocks",
                 .cpu = 64,
                 .max = 1024,
                 .help = "of 65,536 tokens in a batch, from anywhere in the shard"}},
      .cpu =
          lab::BackendFacts{
              .claim = "Disk and processors work at the same time, and all of the processors.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                return {.write_bytes = 4 * kBlockTokens * static_cast<double>(k["blocks"])};
              },
              .witness = lab::Witness::none("each rung has its own"),
              .rungs = {{.name = "io_uring",
                         .claim = "The disk reads the next blocks while one is inflated.",
                         .witness =
                             lab::Witness::outcome("waiting_ms", lab::Witness::Moves::falls, 1.5,
                                                   "time in which the thread did not run, by "
                                                   "the kernel's clocks")},
                        {.name = "overlapped",
                         .claim = "Every thread inflates blocks as the disk brings them.",
                         .witness = lab::Witness::outcome(
                             "working_threads", lab::Witness::Moves::rises, 1.3,
                             "CPU time of all threads over that of the one that calls")}}},
      .metrics = {{.name = "tokens",
                   .unit = "token/s",
                   .better = lab::Metric::Better::higher,
                   .from = lab::Metric::From::rate,
                   .amount =
                       [](const lab::Knobs& k) {
                         return static_cast<double>(kBlockTokens * k["blocks"]);
                       }}},
      .bind =
          [shard](lab::Binder& b) {
            const auto blocks = b.knob("blocks");
            return Params{
                .shard = shard,
                .pick = b.input<std::int32_t>("pick", blocks, lab::Fill::integers(0, kShardBlocks)),
                .out = b.output<std::int32_t>("out", blocks * kBlockTokens),
                .blocks = blocks,
                .block_tokens = kBlockTokens};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto out = r.exact<std::int32_t>("out");
            const auto tokens = static_cast<std::size_t>(p.block_tokens);
            parallel_for(
                p.blocks,
                [&](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t i = begin; i < end; ++i) {
                    p.shard->recompute(out.subspan(static_cast<std::size_t>(i) * tokens, tokens),
                                       p.pick[i]);
                  }
                },
                1);
          },
  };
}

}  // namespace gauntlet::labs::input_pipeline
