#include "catalog/ch04/allreduce_overlap/pair.h"

#include "lab/author/pair.h"

namespace gauntlet::ch04::allreduce_overlap {

lab::Pair<Params> pair() {
  return {
      .title = "blocking → overlapped with compute",
      .technique = "overlapped_collectives",
      .needs = {"2 ranks"},
      .knobs = {{.name = "layers", .cpu = 12, .max = 256, .help = "each with a gradient"},
                {.name = "batch", .cpu = 192, .max = 1 << 14, .help = "samples per rank"},
                {.name = "width", .cpu = 128, .max = 4096, .help = "of a layer"},
                {.name = "link_us", .cpu = 30, .min = 0, .help = "declared latency of the link"},
                {.name = "link_mb_s", .cpu = 800, .help = "declared rate of a rank's port"}},
      .ranks =
          lab::BackendFacts{
              .claim = "Over a link of a declared latency and rate, which takes no CPU time while "
                       "it transfers, sums of gradients are under way while the next gradients are "
                       "computed; the last layer's is left to wait for.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                const auto layers = static_cast<double>(k["layers"]);
                const auto batch = static_cast<double>(k["batch"]);
                const auto width = static_cast<double>(k["width"]);
                return {.read_bytes = 8 * layers * batch * width,
                        .write_bytes = 4 * layers * width * width,
                        .flops = 2 * layers * batch * width * width,
                        .level = lab::Cost::Level::cache};
              },
              .witness = lab::Witness::outcome(
                  "exposed_ms", lab::Witness::Moves::falls, 3,
                  "how long a rank waited for what was on its way, by the stamps of its links")},
      .metrics = {{.name = "hidden_percent",
                   .unit = "% of the time that something was on its way",
                   .better = lab::Metric::Better::higher,
                   .from = lab::Metric::From::outcome}},
      .bind =
          [](lab::Binder& b) {
            const auto layers = b.knob("layers"), batch = b.knob("batch"), width = b.knob("width");
            const auto small = lab::Fill::whole_floats(-4, 5);
            return Params{
                .inputs = b.input<float>("inputs", layers * batch * width, small),
                .errors = b.input<float>("errors", layers * batch * width, small),
                .gradients = b.output<float>("gradients", layers * width * width),
                .layers = layers,
                .batch = batch,
                .width = width,
                .fabric = {.between = {.latency_s = 1e-6 * static_cast<double>(b.knob("link_us")),
                                       .bytes_per_s =
                                           1e6 * static_cast<double>(b.knob("link_mb_s"))}},
                .num_ranks = b.num_ranks()};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            // Whole numbers: sums are exact in any order.
            const auto gradients = r.exact<float>("gradients");
            for (int rank = 0; rank < p.num_ranks; ++rank) {
              const auto* inputs = r.peer_input<float>("inputs", rank);
              const auto* errors = r.peer_input<float>("errors", rank);
              for (std::int64_t at = 0; at < p.layers * p.batch; ++at) {
                float* out = gradients.data() + at / p.batch * p.width * p.width;
                const float* input = inputs + at * p.width;
                for (std::int64_t row = 0; row < p.width; ++row, out += p.width) {
                  const float error = errors[at * p.width + row];
                  for (std::int64_t i = 0; i < p.width; ++i) out[i] += error * input[i];
                }
              }
            }
          },
  };
}

}  // namespace gauntlet::ch04::allreduce_overlap
