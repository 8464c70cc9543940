#include "catalog/ch05/direct_storage/pair.h"

#include "lab/author/pair.h"
#include "lab/author/stored.h"

namespace gauntlet::ch05::direct_storage {
namespace {

constexpr std::int64_t kFileBytes = std::int64_t{256} << 20;

double bytes_of(const lab::Knobs& knobs) {
  return 1024 * static_cast<double>(knobs["parts"] * knobs["part_kib"]);
}

}  // namespace

lab::Pair<Params> pair() {
  const auto stored = std::make_shared<StoredWords>(kFileBytes);
  const auto direct = std::make_shared<SharedDirectFile>();
  return {
      .title = "bounce buffer → cuFile",
      .technique = "direct_storage",
      .needs = {"O_DIRECT"},
      .knobs =
          {{.name = "parts", .cpu = 16, .max = 256, .help = "read, each from its own place"},
           {.name = "part_kib", .cpu = 4096, .min = 4, .max = kFileBytes / 2048, .multiple_of = 4}},
      .cuda =
          lab::BackendFacts{
              .claim =
                  "The disk writes into the GPU's memory by itself; the other way its data go into "
                  "a page-locked ring of the host, and over the link again from there. Both read "
                  "past the page cache; the GPU's memory is shown to the disk before the time.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                return {.read_bytes = bytes_of(k), .level = lab::Cost::Level::disk};
              },
              .witness = lab::Witness::outcome("copied_bytes", lab::Witness::Moves::falls, 100,
                                               "what the kernel read into memory of the process, "
                                               "by /proc/self/io"),
              .needs = {"gds"}},
      .metrics = {{.name = "disk to GPU",
                   .unit = "B/s",
                   .better = lab::Metric::Better::higher,
                   .from = lab::Metric::From::rate,
                   .amount = bytes_of},
                  {.name = lab::kSetupUs,
                   .unit = "us, before the clock starts",
                   .from = lab::Metric::From::outcome}},
      .bind =
          [stored, direct](lab::Binder& b) {
            const auto parts = b.knob("parts"), part_bytes = 1024 * b.knob("part_kib");
            const std::int64_t pages = part_bytes / kDirectBytes;
            return Params{.stored = stored,
                          .direct = direct,
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

}  // namespace gauntlet::ch05::direct_storage
