#include "catalog/ch05/direct_io/pair.h"

#include "core/os/pages.h"
#include "lab/author/pair.h"
#include "lab/author/stored.h"

namespace gauntlet::ch05::direct_io {
namespace {

constexpr std::int64_t kFileBytes = std::int64_t{256} << 20;

double bytes_of(const lab::Knobs& knobs) {
  return 4096 * static_cast<double>(knobs["shards"] * knobs["shard_pages"]);
}

}  // namespace

lab::Pair<Params> pair() {
  const auto stored = std::make_shared<StoredWords>(kFileBytes);
  return {
      .title = "page cache → O_DIRECT aligned",
      .technique = "page_cache_bypass",
      .needs = {"O_DIRECT"},
      .knobs =
          {{.name = "shards", .cpu = 2, .max = 64, .help = "read, each from a place of its own"},
           {.name = "shard_pages",
            .cpu = 4096,
            .max = kFileBytes / 4096 / 2,
            .help = "of 4 KiB in a shard"}},
      .cpu =
          lab::BackendFacts{
              .claim = "Data that is read once needs no copy in the page cache: the disk writes it "
                       "where it is wanted, if address, offset and length are aligned.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                return {.read_bytes = bytes_of(k), .level = lab::Cost::Level::disk};
              },
              .witness = lab::Witness::outcome("page_cache_bytes", lab::Witness::Moves::falls, 100,
                                               "what the page cache holds of the file afterwards, "
                                               "by mincore()")},
      .metrics = {{.name = "disk rate",
                   .unit = "B/s",
                   .better = lab::Metric::Better::higher,
                   .from = lab::Metric::From::rate,
                   .amount = bytes_of}},
      .bind =
          [stored](lab::Binder& b) {
            const auto shards = b.knob("shards"), pages = b.knob("shard_pages");
            const std::int64_t bytes = shards * pages * kDirectBytes;
            Params p{.stored = stored,
                     .start = b.input<std::int32_t>(
                         "start", shards, lab::Fill::integers(0, stored->pages() - pages)),
                     .out = b.output<unsigned char>("out", bytes),
                     .shards = shards,
                     .shard_bytes = pages * kDirectBytes};
            // Out of small pages a disk that takes addresses page by page is slower, for both.
            if (p.out != nullptr) use_huge_pages(p.out, bytes);
            return p;
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            lab::expect_parts(r, "out", *p.stored, {p.start, static_cast<std::size_t>(p.shards)});
          },
  };
}

}  // namespace gauntlet::ch05::direct_io
