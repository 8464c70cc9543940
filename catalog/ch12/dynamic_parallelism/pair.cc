#include "catalog/ch12/dynamic_parallelism/pair.h"

#include <algorithm>

#include "core/affine_rounds.h"
#include "lab/author/pair.h"

namespace gauntlet::ch12::dynamic_parallelism {

lab::Pair<Params> pair() {
  return {
      .title = "host loop → device-side launches",
      .technique = "dynamic_parallelism",
      .knobs = {{.name = "regions", .cpu = 64, .max = 1024, .help = "of 4096 words"},
                {.name = "levels",
                 .cpu = 8,
                 .max = 256,
                 .help = "each of which needs to know what the one before left"}},
      .cuda =
          lab::BackendFacts{
              .claim =
                  "The threads that know how much work there is launch it, side by side; the "
                  "host has to wait for the sizes of each level first, and launches one kernel "
                  "after the other.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                const double bytes = 4.0 * kRegionWords * static_cast<double>(k["regions"]);
                return {
                    .read_bytes = bytes, .write_bytes = bytes, .level = lab::Cost::Level::cache};
              },
              .witness = lab::Witness::outcome("stream_waits", lab::Witness::Moves::falls, 8,
                                               "times that the host waited for sizes, counted "
                                               "where it does")},
      .bind =
          [](lab::Binder& b) {
            const auto words = b.knob("regions") * kRegionWords, levels = b.knob("levels");
            return Params{.in = b.input<std::uint32_t>("in", words, lab::Fill::bytes()),
                          .factor = b.input<std::uint32_t>("factor", levels, lab::Fill::bytes()),
                          .out = b.output<std::uint32_t>("out", words),
                          .regions = b.knob("regions"),
                          .levels = levels};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto out = r.exact<std::uint32_t>("out");
            std::copy_n(p.in, p.regions * kRegionWords, out.begin());
            for (std::int64_t region = 0; region < p.regions; ++region) {
              std::uint32_t* words = out.data() + region * kRegionWords;
              for (std::int64_t level = 0; level < p.levels; ++level) {
                const std::uint32_t count = words_to_refine(words);
                for (std::uint32_t i = 0; i < count; ++i) {
                  words[i] = affine_round(words[i], p.factor[level]);
                }
              }
            }
          },
  };
}

}  // namespace gauntlet::ch12::dynamic_parallelism
