#include "catalog/labs/input_pipeline/lab.h"

#include <map>
#include <utility>

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::labs::input_pipeline {
namespace {

constexpr std::int64_t kShardTokens = 1 << 24;

/// One shard for each kind of block, made when it is first read from.
class Shards {
 public:
  std::shared_ptr<TokenShard> of(std::int64_t block_tokens, std::int64_t num_phrases) {
    auto& shard = shards_[{block_tokens, num_phrases}];
    if (!shard) {
      shard = std::make_shared<TokenShard>(kShardTokens / block_tokens, block_tokens, num_phrases);
    }
    return shard;
  }

 private:
  std::map<std::pair<std::int64_t, std::int64_t>, std::shared_ptr<TokenShard>> shards_;
};

double tokens_of(const lab::Knobs& knobs) {
  return static_cast<double>(knobs["block_tokens"] * knobs["blocks"]);
}

lab::BackendFacts on_cuda() {
  using lab::Witness;
  return {
      .claim =
          "The disk, the link and a GPU that inflates a block with each warp work at the "
          "same time, and the CPU only hands over.",
      .cost = [](const lab::Knobs& k) -> lab::Cost {
        return {.write_bytes = 4 * tokens_of(k), .level = lab::Cost::Level::cache};
      },
      .witness = Witness::none("each rung has its own"),
      .rungs = {{.name = "io_uring",
                 .claim = "The disk reads the next blocks while one is inflated.",
                 .witness = Witness::outcome("waiting_ms", Witness::Moves::falls, 1.5,
                                             "time in which the thread did not run, by the "
                                             "kernel's clocks")},
                {.name = "pinned_ring",
                 .claim = "From page-locked slots the copy engine takes blocks that are inflated "
                          "while the next ones are.",
                 .witness = Witness::fact("page_locked", Witness::Moves::rises, 2,
                                          "whether CUDA knows the memory that is copied from, by "
                                          "cudaPointerGetAttributes()")},
                {.name = "gpu_inflate",
                 .claim = "Blocks cross the link as the disk has them, and thousands of warps "
                          "inflate one each, when all have been read.",
                 .witness = Witness::outcome("link_bytes", Witness::Moves::falls, 1.5,
                                             "bytes that were copied to the device")},
                {.name = "overlapped",
                 .claim = "A group of blocks is copied and inflated while the disk reads the next "
                          "ones, in streams side by side.",
                 .witness = Witness::outcome("tail_ms", Witness::Moves::falls, 1.1,
                                             "time of the GPU after the last block was read, by "
                                             "events")}}};
}

}  // namespace

lab::Lab<Params> lab() {
  const auto shards = std::make_shared<Shards>();
  return {
      .title = "compressed shards on disk → batches of tokens",
      .technique = "input_path",
      .needs = {"O_DIRECT", "io_uring", "lz4"},
      .knobs = {{.name = "blocks",
                 .cpu = 64,
                 .cuda = 2048,
                 .max = 4096,
                 .help = "in a batch, from anywhere in the shard"},
                {.name = "block_tokens",
                 .cpu = 1 << 16,
                 .cuda = 1 << 12,
                 .min = 1024,
                 .max = 1 << 20,
                 .multiple_of = 1024,
                 .help = "of 4 bytes in a block, which one core or one warp inflates"},
                {.name = "phrases",
                 .cpu = TokenShard::kUsualPhrases,
                 .cuda = 256,
                 .min = 16,
                 .max = 1 << 20,
                 .help = "that the text is made of: the fewer, the smaller the blocks"}},
      .cpu =
          lab::BackendFacts{
              .claim = "Disk and processors work at the same time, and all of the processors.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                return {.write_bytes = 4 * tokens_of(k)};
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
      .cuda = on_cuda(),
      .metrics = {{.name = "tokens",
                   .unit = "token/s",
                   .better = lab::Metric::Better::higher,
                   .from = lab::Metric::From::rate,
                   .amount = tokens_of}},
      .bind =
          [shards](lab::Binder& b) {
            const auto blocks = b.knob("blocks"), block_tokens = b.knob("block_tokens");
            const auto shard = shards->of(block_tokens, b.knob("phrases"));
            return Params{
                .shard = shard,
                .pick = b.input<std::int32_t>(
                    "pick", blocks, lab::Fill::integers(0, shard->blocks()), lab::Memory::pinned),
                .out = b.output<std::int32_t>("out", blocks * block_tokens),
                .came_to = b.output<std::int64_t>("came_to", blocks, lab::Memory::pinned),
                .blocks = blocks,
                .block_tokens = block_tokens};
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
            for (std::int64_t& bytes : r.exact<std::int64_t>("came_to")) bytes = p.block_bytes();
          },
  };
}

}  // namespace gauntlet::labs::input_pipeline
