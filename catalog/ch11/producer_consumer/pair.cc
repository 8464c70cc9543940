#include "catalog/ch11/producer_consumer/pair.h"

#include "lab/author/pair.h"

namespace gauntlet::ch11::producer_consumer {

lab::Pair<Params> pair() {
  return {
      .title = "stages in turn → concurrent stages on threads",
      .technique = "concurrent_stages",
      .knobs = {{.name = "steps",
                 .cpu = 4096,
                 .min = kPacketSteps,
                 .max = 1 << 20,
                 .multiple_of = kPacketSteps,
                 .help = "of the sequence; stages hand over 64 at a time"}},
      .cpu =
          lab::BackendFacts{
              .claim =
                  "A layer that needs its own last step cannot be split over cores, but while "
                  "the second is at one packet the first can be at the next: each stage keeps "
                  "a CPU busy. It needs a second CPU, and gains at most as many times as there "
                  "are stages.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                const double bytes = static_cast<double>(k["steps"] * kWidth);
                return {.read_bytes = bytes + 4.0 * kWidth * kWidth,
                        .write_bytes = bytes,
                        .level = lab::Cost::Level::cache};
              },
              .witness = lab::Witness::outcome("busy_cpus", lab::Witness::Moves::rises, 1.2,
                                               "CPU time of all threads per time that goes by")},
      .bind =
          [](lab::Binder& b) {
            const auto steps = b.knob("steps");
            return Params{
                .in = b.input<std::int8_t>("in", steps * kWidth, lab::Fill::bytes()),
                .weights = b.input<std::int8_t>("weights", 4 * kWidth * kWidth, lab::Fill::bytes()),
                .out = b.output<std::int8_t>("out", steps * kWidth),
                .steps = steps};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            // Step by step through both layers, with other loops than the sides have.
            const auto out = r.exact<std::int8_t>("out");
            std::int32_t state[2][kWidth] = {};
            for (std::int64_t step = 0; step < p.steps; ++step) {
              std::int32_t input[kWidth];
              std::copy_n(p.in + step * kWidth, kWidth, input);
              for (int layer = 0; layer < 2; ++layer) {
                const std::int8_t* weights = p.weights + layer * 2 * kWidth * kWidth;
                std::int32_t next[kWidth];
                for (std::int64_t row = 0; row < kWidth; ++row, weights += 2 * kWidth) {
                  std::int32_t sum = 0;
                  for (std::int64_t i = 0; i < kWidth; ++i) {
                    sum += weights[i] * input[i] + weights[kWidth + i] * state[layer][i];
                  }
                  next[row] = std::clamp(sum >> kShift, -127, 127);
                }
                std::copy_n(next, kWidth, state[layer]);
                std::copy_n(next, kWidth, input);
              }
              std::copy_n(input, kWidth, out.data() + step * kWidth);
            }
          },
  };
}

}  // namespace gauntlet::ch11::producer_consumer
