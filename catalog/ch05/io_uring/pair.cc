#include "catalog/ch05/io_uring/pair.h"

#include "core/os/pages.h"
#include "lab/author/pair.h"
#include "lab/author/stored.h"

namespace gauntlet::ch05::io_uring {
namespace {

constexpr std::int64_t kFileBytes = std::int64_t{256} << 20;

double bytes_of(const lab::Knobs& knobs) {
  return 4096 * static_cast<double>(knobs["records"] * knobs["record_pages"]);
}

}  // namespace

lab::Pair<Params> pair() {
  const auto stored = std::make_shared<StoredWords>(kFileBytes);
  return {
      .title = "blocking reads → deep io_uring queue",
      .technique = "queued_reads",
      .needs = {"O_DIRECT", "io_uring"},
      .knobs = {{.name = "records",
                 .cpu = 128,
                 .max = 4096,
                 .help = "read, each from a place of its own"},
                {.name = "record_pages", .cpu = 64, .max = 4096, .help = "of 4 KiB in a record"}},
      .cpu =
          lab::BackendFacts{
              .claim =
                  "With 32 reads in flight the disk has the next one when it ends one; a thread "
                  "that waits for each leaves it idle from the answer to the next request.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                return {.read_bytes = bytes_of(k), .level = lab::Cost::Level::disk};
              },
              .witness = lab::Witness::outcome("reads_in_flight", lab::Witness::Moves::rises, 2,
                                               "requests that the disk had at a time, by its "
                                               "driver's count")},
      .metrics = {{.name = "disk rate",
                   .unit = "B/s",
                   .better = lab::Metric::Better::higher,
                   .from = lab::Metric::From::rate,
                   .amount = bytes_of}},
      .bind =
          [stored](lab::Binder& b) {
            const auto records = b.knob("records"), pages = b.knob("record_pages");
            const std::int64_t bytes = records * pages * kDirectBytes;
            Params p{.stored = stored,
                     .start = b.input<std::int32_t>(
                         "start", records, lab::Fill::integers(0, stored->pages() - pages)),
                     .out = b.output<unsigned char>("out", bytes),
                     .records = records,
                     .record_bytes = pages * kDirectBytes};
            // Out of small pages a disk that takes addresses page by page is slower, for both.
            if (p.out != nullptr) use_huge_pages(p.out, bytes);
            return p;
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            lab::expect_parts(r, "out", *p.stored, {p.start, static_cast<std::size_t>(p.records)});
          },
  };
}

}  // namespace gauntlet::ch05::io_uring
