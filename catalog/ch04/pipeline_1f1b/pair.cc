#include "catalog/ch04/pipeline_1f1b/pair.h"

#include <algorithm>
#include <vector>

#include "lab/author/pair.h"

namespace gauntlet::ch04::pipeline_1f1b {
namespace {

/// [rows, width] values times a stage's weights, or their transpose, where rows are those of all
/// micro-batches.
std::vector<float> product(const Params& p, const std::vector<float>& values, const float* weights,
                           bool transposed) {
  std::vector<float> out(values.size());
  const auto width = static_cast<std::size_t>(p.width);
  for (std::size_t row = 0; row < values.size(); row += width) {
    for (std::size_t k = 0; k < width; ++k) {
      for (std::size_t i = 0; i < width; ++i) {
        out[row + i] += values[row + k] * weights[transposed ? i * width + k : k * width + i];
      }
    }
  }
  return out;
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "GPipe → 1F1B schedule",
      .technique = "pipeline_schedules",
      .goal = lab::Goal::memory,
      .goal_metric = "most_held_kib",
      .needs = {"2 ranks"},
      .knobs = {{.name = "batches", .cpu = 8, .max = 1024, .help = "micro-batches of a step"},
                {.name = "rows", .cpu = 32, .max = 4096, .help = "of a micro-batch"},
                {.name = "width", .cpu = 128, .max = 4096, .help = "of a stage's layer"}},
      .ranks =
          lab::BackendFacts{
              .claim = "A stage that goes back as soon as it can holds activations of as many "
                       "micro-batches as there are stages from it on, not of all; the bubble and "
                       "the work are the same.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                const auto rows = static_cast<double>(k["batches"] * k["rows"]);
                const auto width = static_cast<double>(k["width"]);
                // Of one stage: others add theirs, but how many there are is not known here.
                return {.read_bytes = 4 * (2 * rows * width + width * width),
                        .write_bytes = 4 * width * width,
                        .flops = 2 * rows * width * width,
                        .level = lab::Cost::Level::cache};
              },
              .witness =
                  lab::Witness::outcome("most_held_kib", lab::Witness::Moves::falls, 2,
                                        "activations held at most, by the count of the "
                                        "lab's store that keeps them (the mean of all stages)")},
      .metrics = {{.name = "most_held_kib",
                   .unit = "KiB of activations held at most, mean of all stages",
                   .from = lab::Metric::From::outcome}},
      .bind =
          [](lab::Binder& b) {
            const auto batches = b.knob("batches"), rows = b.knob("rows"), width = b.knob("width");
            const auto small = lab::Fill::whole_floats(-1, 2);
            return Params{.inputs = b.input<float>("inputs", batches * rows * width, small),
                          .errors = b.input<float>("errors", batches * rows * width, small),
                          .weights = b.input<float>("weights", width * width, small),
                          .gradients = b.output<float>("gradients", width * width),
                          .batches = batches,
                          .rows = rows,
                          .width = width,
                          .rank = b.rank(),
                          .num_ranks = b.num_ranks()};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            // Whole numbers, and sums of them below 2^24: exact in any order.
            const auto count = static_cast<std::size_t>(p.batches * p.size());
            const auto* inputs = r.peer_input<float>("inputs", 0);
            const auto* errors = r.peer_input<float>("errors", p.num_ranks - 1);
            std::vector<float> in(inputs, inputs + count), error(errors, errors + count);
            for (int stage = 0; stage < p.rank; ++stage) {
              in = product(p, in, r.peer_input<float>("weights", stage), false);
            }
            for (int stage = p.num_ranks - 1; stage > p.rank; --stage) {
              error = product(p, error, r.peer_input<float>("weights", stage), true);
            }
            const auto gradients = r.exact<float>("gradients");
            const auto width = static_cast<std::size_t>(p.width);
            for (std::size_t row = 0; row < count; row += width) {
              for (std::size_t k = 0; k < width; ++k) {
                for (std::size_t i = 0; i < width; ++i) {
                  gradients[k * width + i] += in[row + k] * error[row + i];
                }
              }
            }
          },
  };
}

}  // namespace gauntlet::ch04::pipeline_1f1b
