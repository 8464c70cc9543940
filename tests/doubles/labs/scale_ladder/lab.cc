#include "tests/doubles/labs/scale_ladder/lab.h"

#include "lab/author/pair.h"

namespace gauntlet::labs::scale_ladder {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const auto bytes = 4 * static_cast<double>(knobs["count"]);
  return {.read_bytes = bytes, .write_bytes = bytes, .level = lab::Cost::Level::cache};
}

lab::Witness fewer_passes() {
  return lab::Witness::fact("passes", lab::Witness::Moves::falls, 2, "passes over the data");
}

}  // namespace

lab::Lab<Params> lab() {
  return {
      .title = "sixteen passes → four → one",
      .technique = "fewer_passes",
      .knobs = {{.name = "count", .cpu = 1 << 14, .help = "elements"}},
      .cpu =
          lab::BackendFacts{
              .claim = "A pass that nobody needs takes as long as one that counts.",
              .cost = cost,
              .witness = lab::Witness::none("each rung has its own"),
              .rungs = {{.name = "four", .claim = "Twelve passes less.", .witness = fewer_passes()},
                        {.name = "once",
                         .claim = "The one pass that it takes.",
                         .witness = fewer_passes()}}},
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
