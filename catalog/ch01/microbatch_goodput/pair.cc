#include "catalog/ch01/microbatch_goodput/pair.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch01::microbatch_goodput {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const auto requests = static_cast<double>(knobs["requests"]);
  const auto width = static_cast<double>(knobs["width"]);
  const auto hidden = static_cast<double>(knobs["hidden"]);
  return {.read_bytes = 4 * (2 * width * hidden + requests * width),
          .write_bytes = 4 * requests * width,
          .flops = 4 * requests * width * hidden};
}

struct Activation {
  double value = 0;
  double magnitude = 0;  // Σ|terms| of the sum before relu
};

void reference(const Params& p, lab::Reference& r) {
  const auto requests = r.stratified(p.requests, 8);
  const auto values = r.rows("out", p.width, requests, {.length = p.hidden});
  const auto magnitudes = r.magnitudes("out");
  // The activations bring their own errors along. Those are independent, so they add up like a
  // random walk, and each is in proportion to √width where the bound below has √hidden.
  const double depth_ratio =
      std::sqrt(static_cast<double>(p.width) / static_cast<double>(p.hidden));
  parallel_for(
      static_cast<std::int64_t>(requests.size()),
      [&](std::int64_t begin, std::int64_t end) {
        std::vector<Activation> activation(static_cast<std::size_t>(p.hidden));
        for (std::int64_t i = begin; i < end; ++i) {
          for (std::int64_t row = 0; row < p.hidden; ++row) {
            double sum = 0, magnitude = 0;
            for (std::int64_t k = 0; k < p.width; ++k) {
              const double term = double{p.up[row * p.width + k]} * p.in[requests[i] * p.width + k];
              sum += term;
              magnitude += std::abs(term);
            }
            activation[row] = {std::max(sum, 0.0), magnitude};
          }
          for (std::int64_t row = 0; row < p.width; ++row) {
            double sum = 0, magnitude = 0, carried = 0;
            for (std::int64_t k = 0; k < p.hidden; ++k) {
              const double weight = p.down[row * p.hidden + k];
              const double error = weight * activation[k].magnitude;
              sum += weight * activation[k].value;
              magnitude += std::abs(weight) * activation[k].value;
              carried += error * error;
            }
            values[i * p.width + row] = sum;
            magnitudes[i * p.width + row] = magnitude + depth_ratio * std::sqrt(carried);
          }
        }
      },
      2);
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "one request at a time → micro-batches; goodput = useful items/s",
      .technique = "micro_batching",
      .knobs = {{.name = "requests",
                 .cpu = 32,
                 .cuda = 64,
                 .max = 4096,
                 .multiple_of = 32,
                 .help = "requests waiting; micro-batches take 32 of them"},
                {.name = "width",
                 .cpu = 1024,
                 .cuda = 2048,
                 .max = 16384,
                 .multiple_of = 128,
                 .help = "inputs and outputs of the network"},
                {.name = "hidden",
                 .cpu = 2048,
                 .cuda = 4096,
                 .max = 16384,
                 .multiple_of = 128,
                 .help = "units of the hidden layer"}},
      .cpu =
          lab::BackendFacts{
              .claim =
                  "A row of weights that 32 requests use while it is in L1 comes from memory once "
                  "instead of 32 times.",
              .cost = cost,
              .witness = lab::Witness::fact("weight_passes", lab::Witness::Moves::falls, 8,
                                            "times that all weights are walked through")},
      .cuda =
          lab::BackendFacts{
              .claim =
                  "A weight in a register that 32 requests use is loaded once instead of 32 times, "
                  "and 32 requests share one launch.",
              .cost = cost,
              .witness = lab::Witness::counter("lts__t_sectors_srcunit_tex_op_read.sum",
                                               lab::Witness::Moves::falls, 4,
                                               "sectors that the SMs read through L2")},
      .metrics = {{.name = "goodput",
                   .unit = "items/s",
                   .better = lab::Metric::Better::higher,
                   .from = lab::Metric::From::rate,
                   .amount =
                       [](const lab::Knobs& knobs) {
                         return static_cast<double>(knobs["requests"]);
                       }}},
      .bind =
          [](lab::Binder& b) {
            const auto requests = b.knob("requests");
            const auto width = b.knob("width"), hidden = b.knob("hidden");
            return Params{.in = b.input<float>("in", requests * width, lab::Fill::uniform()),
                          .up = b.input<float>("up", hidden * width, lab::Fill::uniform()),
                          .down = b.input<float>("down", width * hidden, lab::Fill::uniform()),
                          .activation = b.scratch<float>("activation", requests * hidden),
                          .out = b.output<float>("out", requests * width),
                          .requests = requests,
                          .width = width,
                          .hidden = hidden};
          },
      .reference = reference,
  };
}

}  // namespace gauntlet::ch01::microbatch_goodput
