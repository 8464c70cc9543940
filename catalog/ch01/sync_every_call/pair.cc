#include "catalog/ch01/sync_every_call/pair.h"

#include <cmath>

#include "core/os/threads.h"
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
  // A layer rounds once, and the layers after it shrink or grow what it lost by their weights: the
  // norm is that of all layers' results as they arrive at the last one.
  const auto values = r.values("out", {.length = 2});
  const auto norms = r.norms("out");
  parallel_for(p.width, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) values[i] = p.in[i];
    for (std::int64_t layer = 0; layer < p.layers; ++layer) {
      const float* weights = p.weights + layer * p.width;
      const float* biases = p.biases + layer * p.width;
      for (std::int64_t i = begin; i < end; ++i) {
        const double weight = weights[i];
        values[i] = weight * values[i] + biases[i];
        norms[i] = weight * weight * norms[i] + values[i] * values[i];
      }
    }
    for (std::int64_t i = begin; i < end; ++i) norms[i] = std::sqrt(norms[i]);
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
              .witness = lab::Witness::outcome("stream_waits", lab::Witness::Moves::falls, 8,
                                               "times per step that the host waited")},
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
