#include "catalog/ch01/sync_every_call/pair.h"

#include <cmath>

#include "core/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch01::sync_every_call {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const auto layers = static_cast<double>(knobs["layers"]);
  const auto width = static_cast<double>(knobs["width"]);
  return {.read_bytes = 4 * width * (2 * layers + 1),
          .write_bytes = 4 * width,
          .flops = 2 * width * layers,
          .level = lab::Cost::Level::cache};
}

void reference(const Params& p, lab::Reference& r) {
  const auto values = r.values("out", {.length = p.layers});
  const auto magnitudes = r.magnitudes("out");
  parallel_for(p.width, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      double value = p.in[i], magnitude = std::abs(value);
      for (std::int64_t layer = 0; layer < p.layers; ++layer) {
        const double weight = p.weights[layer * p.width + i], bias = p.biases[layer * p.width + i];
        value = weight * value + bias;
        magnitude = std::abs(weight) * magnitude + std::abs(bias);
      }
      values[i] = value;
      magnitudes[i] = magnitude;
    }
  });
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "synchronise after each operation → once per step",
      .technique = "deferred_synchronisation",
      .knobs = {{.name = "layers",
                 .cpu = 64,
                 .max = 4096,
                 .help = "dependent operations of a step, one kernel each"},
                {.name = "width", .cpu = 1 << 15, .max = 1 << 24, .help = "elements"}},
      .cuda =
          lab::BackendFacts{
              .claim = "Work of one stream runs in order anyway; waiting once lets the host launch "
                       "ahead, so the round trip to the GPU is paid once per step.",
              .cost = cost,
              .witness = lab::Witness::fact("synchronisations", lab::Witness::Moves::falls, 8,
                                            "times per step that the host waits for the stream")},
      .bind =
          [](lab::Binder& b) {
            const auto layers = b.knob("layers"), width = b.knob("width");
            return Params{
                .in = b.input<float>("in", width, lab::Fill::uniform()),
                .weights = b.input<float>("weights", layers * width, lab::Fill::uniform()),
                .biases = b.input<float>("biases", layers * width, lab::Fill::uniform()),
                .out = b.output<float>("out", width),
                .layers = layers,
                .width = width};
          },
      .reference = reference,
  };
}

}  // namespace gauntlet::ch01::sync_every_call
