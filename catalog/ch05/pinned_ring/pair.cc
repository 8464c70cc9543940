#include "catalog/ch05/pinned_ring/pair.h"

#include "lab/author/pair.h"
#include "lab/author/stored.h"

namespace gauntlet::ch05::pinned_ring {
namespace {

constexpr std::int64_t kFileBytes = std::int64_t{128} << 20;

double bytes_of(const lab::Knobs& knobs) {
  return 1024 * static_cast<double>(knobs["parts"] * knobs["part_kib"]);
}

}  // namespace

lab::Pair<Params> pair() {
  const auto stored = std::make_shared<StoredWords>(kFileBytes);
  return {
      .title = "read → pageable → GPU vs read into a pinned ring, overlapped",
      .technique = "pinned_ring",
      .needs = {"O_DIRECT"},
      .knobs = {{.name = "parts", .cpu = 64, .max = 1024, .help = "read, each from its own place"},
                {.name = "part_kib",
                 .cpu = 1024,
                 .min = 4,
                 .max = kFileBytes / 2048,
                 .multiple_of = 4,
                 .help = "of a part, and of a slot of the ring"}},
      .cuda =
          lab::BackendFacts{
              .claim =
                  "From a page-locked slot the copy engine takes a part by itself while the thread "
                  "reads the next one into another; from pageable memory the thread has to copy "
                  "it once more, into the driver's own buffers. The page cache holds the file.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                return {.read_bytes = bytes_of(k), .level = lab::Cost::Level::host_link};
              },
              .witness = lab::Witness::fact("page_locked", lab::Witness::Moves::rises, 2,
                                            "whether CUDA knows the memory that is read into, by "
                                            "cudaPointerGetAttributes()")},
      .metrics = {{.name = "file to GPU",
                   .unit = "B/s",
                   .better = lab::Metric::Better::higher,
                   .from = lab::Metric::From::rate,
                   .amount = bytes_of}},
      .bind =
          [stored](lab::Binder& b) {
            const auto parts = b.knob("parts"), part_bytes = 1024 * b.knob("part_kib");
            const std::int64_t pages = part_bytes / kDirectBytes;
            return Params{.stored = stored,
                          .start = b.input<std::int32_t>(
                              "start", parts, lab::Fill::integers(0, stored->pages() - pages),
                              lab::Memory::pinned),
                          .out = b.output<unsigned char>("out", parts * part_bytes),
                          .parts = parts,
                          .part_bytes = part_bytes};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            lab::expect_parts(r, "out", *p.stored, {p.start, static_cast<std::size_t>(p.parts)});
          },
  };
}

}  // namespace gauntlet::ch05::pinned_ring
