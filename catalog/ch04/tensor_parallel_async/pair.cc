#include "catalog/ch04/tensor_parallel_async/pair.h"

#include "lab/author/pair.h"

namespace gauntlet::ch04::tensor_parallel_async {

lab::Pair<Params> pair() {
  return {
      .title = "gather then multiply → overlapped chunks",
      .technique = "overlapped_collectives",
      .needs = {"2 ranks"},
      .knobs = {{.name = "chunks", .cpu = 8, .max = 256, .help = "parts that are gathered alone"},
                {.name = "rows", .cpu = 40, .max = 4096, .help = "of a rank in a chunk"},
                {.name = "depth", .cpu = 256, .max = 1 << 14, .help = "values of a row"},
                {.name = "width", .cpu = 384, .max = 1 << 14, .help = "a rank's columns"},
                {.name = "link_us", .cpu = 100, .min = 0, .help = "declared latency of the link"},
                {.name = "link_mb_s", .cpu = 300, .help = "declared rate of a rank's port"}},
      .ranks =
          lab::BackendFacts{
              .claim = "Over a link of a declared latency and rate, which takes no CPU time while "
                       "it transfers, a rank multiplies its own rows while those of the others "
                       "are on their way, and then each chunk as it has come.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                const auto rows = static_cast<double>(k["chunks"] * k["rows"]);
                const auto depth = static_cast<double>(k["depth"]);
                const auto width = static_cast<double>(k["width"]);
                return {.read_bytes = 4 * (rows * depth + depth * width),
                        .write_bytes = 4 * rows * width,
                        .flops = 2 * rows * depth * width,
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
            const auto chunks = b.knob("chunks"), rows = b.knob("rows"), depth = b.knob("depth"),
                       width = b.knob("width");
            const auto ranks = b.num_ranks();
            const auto small = lab::Fill::whole_floats(-8, 9);
            return Params{
                .inputs = b.input<float>("inputs", chunks * rows * depth, small),
                .weights = b.input<float>("weights", depth * width, small),
                .gathered = b.scratch<float>("gathered", chunks * ranks * rows * depth),
                .outputs = b.output<float>("outputs", chunks * ranks * rows * width),
                .chunks = chunks,
                .rows = rows,
                .depth = depth,
                .width = width,
                .fabric = {.between = {.latency_s = 1e-6 * static_cast<double>(b.knob("link_us")),
                                       .bytes_per_s =
                                           1e6 * static_cast<double>(b.knob("link_mb_s"))}},
                .num_ranks = ranks};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            // Whole numbers: sums are exact in any order.
            const auto outputs = r.exact<float>("outputs");
            for (int rank = 0; rank < p.num_ranks; ++rank) {
              const auto* inputs = r.peer_input<float>("inputs", rank);
              for (std::int64_t row = 0; row < p.chunks * p.rows; ++row) {
                const std::int64_t chunk = row / p.rows;
                const std::int64_t place = (chunk * p.num_ranks + rank) * p.rows + row % p.rows;
                float* out = outputs.data() + place * p.width;
                for (std::int64_t k = 0; k < p.depth; ++k) {
                  const float value = inputs[row * p.depth + k];
                  for (std::int64_t i = 0; i < p.width; ++i) {
                    out[i] += value * p.weights[k * p.width + i];
                  }
                }
              }
            }
          },
  };
}

}  // namespace gauntlet::ch04::tensor_parallel_async
