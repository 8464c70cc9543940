#include "catalog/ch05/gpu_decompression/pair.h"

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch05::gpu_decompression {
namespace {

constexpr std::int64_t kShardBlocks = 4096;
constexpr std::int64_t kBlockTokens = 4096;
constexpr std::int64_t kPhrases = 256;  // of which blocks come to half of their size

}  // namespace

lab::Pair<Params> pair() {
  const auto packed = std::make_shared<Packed>(kShardBlocks, kBlockTokens, kPhrases);
  return {
      .title = "inflate on the CPU, copy → copy compressed, inflate on the GPU",
      .technique = "device_decompression",
      .needs = {"O_DIRECT", "lz4"},
      .knobs = {{.name = "blocks",
                 .cpu = 1024,
                 .max = 4096,
                 .help = "of 16 KiB; one warp inflates one"}},
      .cuda =
          lab::BackendFacts{
              .claim =
                  "Half of the bytes cross the link, and a thousand warps inflate a block each "
                  "while one core inflates one after the other. The compressed blocks are in host "
                  "memory before the time starts; to gather those of a batch is part of it.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                return {.write_bytes = 4 * kBlockTokens * static_cast<double>(k["blocks"]),
                        .level = lab::Cost::Level::cache};
              },
              .witness = lab::Witness::outcome("link_bytes", lab::Witness::Moves::falls, 1.5,
                                               "bytes that were copied to the device")},
      .bind =
          [packed](lab::Binder& b) {
            const auto blocks = b.knob("blocks");
            return Params{
                .packed = packed,
                .pick = b.input<std::int32_t>("pick", blocks, lab::Fill::integers(0, kShardBlocks),
                                              lab::Memory::pinned),
                .out = b.output<std::int32_t>("out", blocks * kBlockTokens),
                .came_to = b.output<std::int64_t>("came_to", blocks, lab::Memory::pinned),
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
                    p.packed->shard().recompute(
                        out.subspan(static_cast<std::size_t>(i) * tokens, tokens), p.pick[i]);
                  }
                },
                1);
            for (std::int64_t& bytes : r.exact<std::int64_t>("came_to")) bytes = 4 * p.block_tokens;
          },
  };
}

}  // namespace gauntlet::ch05::gpu_decompression
