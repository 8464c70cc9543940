// What ladders of passes over an array have in common.
#pragma once
#include "lab/author/pair.h"
#include "tests/doubles/labs/scale_ladder/lab.h"

namespace gauntlet::labs::scale_ladder {

inline lab::Cost cost(const lab::Knobs& knobs) {
  const auto bytes = 4 * static_cast<double>(knobs["count"]);
  return {.read_bytes = bytes, .write_bytes = bytes, .level = lab::Cost::Level::cache};
}

inline lab::Witness fewer_passes() {
  return lab::Witness::fact("passes", lab::Witness::Moves::falls, 2, "passes over the data");
}

/// A lab of these but for its title and what it says of its backend.
inline lab::Lab<Params> ladder(std::string title, lab::BackendFacts cpu) {
  return {
      .title = std::move(title),
      .technique = "fewer_passes",
      .knobs = {{.name = "count", .cpu = 1 << 14, .help = "elements"}},
      .cpu = std::move(cpu),
      .bind =
          [](lab::Binder& b) {
            const auto count = b.knob("count");
            return Params{.in = b.input<float>("in", count, lab::Fill::uniform()),
                          .out = b.output<float>("out", count),
                          .count = count};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto out = r.exact<float>("out");
            for (std::int64_t i = 0; i < p.count; ++i) {
              out[static_cast<std::size_t>(i)] = 2 * p.in[i];
            }
          },
  };
}

}  // namespace gauntlet::labs::scale_ladder
