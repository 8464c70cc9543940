#include "catalog/ch11/event_dependencies/pair.h"

#include <algorithm>
#include <vector>

#include "lab/author/pair.h"

namespace gauntlet::ch11::event_dependencies {

lab::Pair<Params> pair() {
  return {
      .title = "device-wide synchronisation → events",
      .technique = "event_dependencies",
      .knobs = {{.name = "words", .cpu = 1 << 16, .max = 1 << 26, .help = "of a half"},
                {.name = "rounds",
                 .cpu = 64,
                 .max = 4096,
                 .help = "each needs what both halves had before it"}},
      .cuda =
          lab::BackendFacts{
              .claim = "A stream that waits for an event is told by the GPU itself; where the host "
                       "waits for the device between rounds, the GPU idles until it has been told "
                       "of the next.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                const double bytes = 8 * static_cast<double>(k["words"]);
                return {
                    .read_bytes = bytes, .write_bytes = bytes, .level = lab::Cost::Level::cache};
              },
              .witness = lab::Witness::outcome("device_waits", lab::Witness::Moves::falls, 8,
                                               "times that the host waited for the device, "
                                               "counted where it does")},
      .bind =
          [](lab::Binder& b) {
            const auto words = b.knob("words"), rounds = b.knob("rounds");
            return Params{.in = b.input<std::uint32_t>("in", 2 * words, lab::Fill::bytes()),
                          .factor = b.input<std::uint32_t>("factor", rounds, lab::Fill::bytes()),
                          .between = b.scratch<std::uint32_t>("between", 4 * words),
                          .out = b.output<std::uint32_t>("out", 2 * words),
                          .words = words,
                          .rounds = rounds};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto out = r.exact<std::uint32_t>("out");
            std::vector<std::uint32_t> field(p.in, p.in + 2 * p.words);
            for (std::int64_t round = 0; round < p.rounds; ++round) {
              const std::uint32_t factor = p.factor[round] & ~1u;
              for (std::int64_t i = 0; i < p.words; ++i) {
                const std::uint32_t first = field[i], second = field[p.words + i];
                field[i] = first * factor + second;
                field[p.words + i] = second * factor + first;
              }
            }
            std::ranges::copy(field, out.begin());
          },
  };
}

}  // namespace gauntlet::ch11::event_dependencies
