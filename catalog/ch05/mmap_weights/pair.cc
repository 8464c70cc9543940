#include "catalog/ch05/mmap_weights/pair.h"

#include <vector>

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch05::mmap_weights {
namespace {

constexpr std::int64_t kFileBytes = std::int64_t{128} << 20;

}  // namespace

lab::Pair<Params> pair() {
  const auto stored = std::make_shared<StoredWords>(kFileBytes);
  return {
      .title = "read() into memory → mapped checkpoint",
      .technique = "mapped_files",
      .needs = {"O_DIRECT"},
      .knobs = {{.name = "rows", .cpu = 16384, .max = 1 << 16, .multiple_of = 4},
                {.name = "columns",
                 .cpu = 2048,
                 .min = 1024,
                 .max = 2048,
                 .multiple_of = 1024,
                 .help = "int8 weights per row"}},
      .cpu =
          lab::BackendFacts{
              .claim =
                  "A checkpoint that the page cache holds, as after another process loaded it, "
                  "is used where it is: read() would fetch and zero as many pages again, and "
                  "copy into them. Loading and one product with a vector are timed.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                return {.read_bytes = static_cast<double>(k["rows"] * k["columns"]),
                        .write_bytes = 4 * static_cast<double>(k["rows"])};
              },
              .witness = lab::Witness::outcome("copied_bytes", lab::Witness::Moves::falls, 100,
                                               "what the kernel copied out of files, by "
                                               "/proc/self/io")},
      .bind =
          [stored](lab::Binder& b) {
            const auto rows = b.knob("rows"), columns = b.knob("columns");
            const std::int64_t pages = rows * columns / kDirectBytes;
            return Params{.stored = stored,
                          .start = b.input<std::int32_t>(
                              "start", 1, lab::Fill::integers(0, stored->pages() - pages)),
                          .x = b.input<std::int8_t>("x", columns, lab::Fill::bytes()),
                          .out = b.output<std::int32_t>("out", rows),
                          .rows = rows,
                          .columns = columns};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto out = r.exact<std::int32_t>("out");
            std::vector<std::uint64_t> words(static_cast<std::size_t>(p.rows * p.columns / 8));
            p.stored->recompute(words, p.start[0]);
            const auto* weights = reinterpret_cast<const std::int8_t*>(words.data());
            parallel_for(
                p.rows,
                [&](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t row = begin; row < end; ++row) {
                    std::int32_t sum = 0;
                    for (std::int64_t i = 0; i < p.columns; ++i) {
                      sum += weights[row * p.columns + i] * p.x[i];
                    }
                    out[row] = sum;
                  }
                },
                512);
          },
  };
}

}  // namespace gauntlet::ch05::mmap_weights
