#include "catalog/ch12/device_graph_launch/pair.h"

#include "core/affine_rounds.h"
#include "lab/author/pair.h"

namespace gauntlet::ch12::device_graph_launch {

lab::Pair<Params> pair() {
  return {
      .title = "round trip to the host → graph launched from the device",
      .technique = "device_graph_launch",
      .knobs = {{.name = "words", .cpu = 1 << 14, .max = 1 << 24, .help = "of 4 bytes"}},
      .cuda =
          lab::BackendFacts{
              .claim = "A graph that launches itself again goes on until the data say that it is "
                       "done, 24 to 31 times here; a host that decides waits for each iteration. "
                       "Both launch a graph, which is made before.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                const double bytes = 4 * static_cast<double>(k["words"]);
                return {
                    .read_bytes = bytes, .write_bytes = bytes, .level = lab::Cost::Level::cache};
              },
              .witness = lab::Witness::outcome("stream_waits", lab::Witness::Moves::falls, 8,
                                               "times that the host waited for a decision, "
                                               "counted where it does")},
      .metrics = {{.name = lab::kSetupUs,
                   .unit = "us, before the clock starts",
                   .from = lab::Metric::From::outcome}},
      .bind =
          [](lab::Binder& b) {
            const auto words = b.knob("words");
            return Params{
                .in = b.input<std::uint32_t>("in", words, lab::Fill::bytes()),
                .factor = b.input<std::uint32_t>("factor", kMost, lab::Fill::bytes()),
                .wanted = b.input<std::int32_t>("wanted", 1, lab::Fill::integers(kFewest, kMost)),
                .out = b.output<std::uint32_t>("out", words),
                .words = words};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            AffineRounds rounds;
            for (std::int32_t round = 0; round < *p.wanted; ++round) rounds.add(p.factor[round]);
            const auto out = r.exact<std::uint32_t>("out");
            for (std::size_t i = 0; i < out.size(); ++i) out[i] = rounds(p.in[i]);
          },
  };
}

}  // namespace gauntlet::ch12::device_graph_launch
