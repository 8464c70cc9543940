#include "catalog/ch02/coherent_c2c/pair.h"

#include "lab/author/pair.h"

namespace gauntlet::ch02::coherent_c2c {
namespace {

constexpr std::int64_t kTableBytes = std::int64_t{512} << 20;

double bytes_of(const lab::Knobs& knobs) {
  return 1024 * static_cast<double>(knobs["blocks"] * knobs["block_kib"]);
}

}  // namespace

lab::Pair<Params> pair() {
  const auto table = std::make_shared<HostTable>(kTableBytes);
  return {
      .title = "explicit copies → NVLink-C2C coherent buffers with placement",
      .technique = "coherent_link",
      .knobs = {{.name = "blocks",
                 .cpu = 1024,
                 .max = 1 << 16,
                 .help = "gathered from a table in the CPU's memory"},
                {.name = "block_kib",
                 .cpu = 64,
                 .min = 1,
                 .max = kTableBytes / 2048,
                 .help = "of a block; sweep it to see from where on copies are as good"}},
      .cuda =
          lab::BackendFacts{
              .claim =
                  "One kernel gathers blocks from ordinary memory of the host over NVLink-C2C, "
                  "where copies are a command for each block. The table is placed in the CPU's "
                  "memory and advised to stay there, what is gathered in the GPU's.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                return {.read_bytes = bytes_of(k), .level = lab::Cost::Level::host_link};
              },
              .witness = lab::Witness::fact("copies", lab::Witness::Moves::falls, 2,
                                            "copies in the graph that a run is captured to"),
              .needs = {"grace"}},
      .metrics = {{.name = "link rate",
                   .unit = "B/s",
                   .better = lab::Metric::Better::higher,
                   .from = lab::Metric::From::rate,
                   .amount = bytes_of}},
      .bind =
          [table](lab::Binder& b) {
            const auto blocks = b.knob("blocks"), block_bytes = 1024 * b.knob("block_kib");
            return Params{.table = table,
                          .pick = b.input<std::int32_t>(
                              "pick", blocks, lab::Fill::integers(0, kTableBytes / block_bytes),
                              lab::Memory::pinned),
                          .out = b.output<unsigned char>("out", blocks * block_bytes),
                          .blocks = blocks,
                          .block_bytes = block_bytes};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto out = r.exact<unsigned char>("out");
            auto* words = reinterpret_cast<std::uint64_t*>(out.data());
            const std::int64_t block_words = p.block_bytes / 8;
            parallel_for(
                p.blocks,
                [&](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t i = begin; i < end; ++i) {
                    p.table->recompute(
                        {words + i * block_words, static_cast<std::size_t>(block_words)},
                        p.pick[i] * block_words);
                  }
                },
                1);
          },
  };
}

}  // namespace gauntlet::ch02::coherent_c2c
