#include "catalog/ch01/microbatch_goodput/pair.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "core/os/threads.h"
#include "lab/author/pair.h"
#include "lab/author/product.h"

namespace gauntlet::ch01::microbatch_goodput {
namespace {

lab::Cost cost(const lab::Knobs& knobs, lab::Cost::Level level) {
  const auto requests = static_cast<double>(knobs["requests"]);
  const auto width = static_cast<double>(knobs["width"]);
  const auto hidden = static_cast<double>(knobs["hidden"]);
  return {.read_bytes = 4 * (2 * width * hidden + requests * width),
          .write_bytes = 4 * requests * width,
          .flops = 4 * requests * width * hidden,
          .level = level};
}

/// The hidden layer of all requests: what it must be, and the squared norm that it brings into each
/// sum of the second layer.
struct Activations {
  std::vector<double> value;    // [requests, hidden]
  std::vector<double> squares;  // [requests, hidden]
};

Activations activations(const Params& p) {
  const std::int64_t inputs = p.requests * p.width;
  std::vector<double> in(p.in, p.in + inputs), in2(in);
  for (double& x : in2) x *= x;
  const auto count = static_cast<std::size_t>(p.requests * p.hidden);
  Activations result{std::vector<double>(count), std::vector<double>(count)};
  // Sums of `width` terms carry their own errors into sums of `hidden`, whose bound is in
  // proportion to √hidden.
  const double depth_ratio = static_cast<double>(p.width) / static_cast<double>(p.hidden);
  const auto width = static_cast<std::size_t>(p.width);
  parallel_for(
      p.hidden,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t unit = begin; unit < end; ++unit) {
          for (std::int64_t request = 0; request < p.requests; ++request) {
            const lab::WeightedSums sums =
                lab::weighted_sums(p.up + unit * p.width, {&in[request * p.width], width},
                                   {&in2[request * p.width], width});
            const double value = std::max(sums.sum, 0.0);
            const double carried = value > 0 ? sums.squares + value * value * 2 / 3 : 0;
            result.value[request * p.hidden + unit] = value;
            result.squares[request * p.hidden + unit] = value * value + depth_ratio * carried;
          }
        }
      },
      2);
  return result;
}

void reference(const Params& p, lab::Reference& r) {
  const Activations hidden = activations(p);
  const auto width = static_cast<std::size_t>(p.width), units = static_cast<std::size_t>(p.hidden);
  const auto of_request = [&](const std::vector<double>& all, std::int64_t request) {
    return std::span<const double>(&all[request * p.hidden], units);
  };

  const auto requests = r.stratified(p.requests, 16);
  const auto values = r.rows("out", p.width, requests, {.length = p.hidden});
  const auto norms = r.norms("out");
  parallel_for(
      p.width,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          for (std::size_t i = 0; i < requests.size(); ++i) {
            const lab::WeightedSums sums =
                lab::weighted_sums(p.down + row * p.hidden, of_request(hidden.value, requests[i]),
                                   of_request(hidden.squares, requests[i]));
            values[i * width + row] = sums.sum;
            norms[i * width + row] = std::sqrt(sums.squares);
          }
        }
      },
      2);

  // Σ_j w_j Σ_k down[j, k]·a[k] = Σ_k a[k]·(Σ_j w_j·down[j, k]): one pass over the weights for all
  // requests.
  const lab::RowSums sums = r.row_sums("out");
  std::vector<double> weighted(units), weighted2(units);
  parallel_for(p.hidden, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = 0; row < p.width; ++row) {
      const double w = sums.weights[row];
      for (std::int64_t k = begin; k < end; ++k) {
        const double term = w * p.down[row * p.hidden + k];
        weighted[k] += term;
        weighted2[k] += term * term;
      }
    }
  });
  for (std::int64_t request = 0; request < p.requests; ++request) {
    const auto value = of_request(hidden.value, request);
    const auto squares = of_request(hidden.squares, request);
    sums.sums[request] = std::inner_product(value.begin(), value.end(), weighted.begin(), 0.0);
    sums.squares[request] =
        std::inner_product(squares.begin(), squares.end(), weighted2.begin(), 0.0);
  }
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "one request at a time → micro-batches; goodput = useful items/s",
      .technique = "micro_batching",
      .knobs = {{.name = "requests",
                 .cpu = 32,
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
                 .cuda = 8192,
                 .max = 16384,
                 .multiple_of = 128,
                 .help = "units of the hidden layer"}},
      .cpu =
          lab::BackendFacts{
              .claim =
                  "A row of weights that 32 requests use while it is in L1 is fetched from the "
                  "shared cache once instead of 32 times, while the requests' vectors stay in L2; "
                  "how long requests wait for one another is not in the time.",
              .cost = [](const lab::Knobs& k) { return cost(k, lab::Cost::Level::cache); },
              .witness = lab::Witness::counter("LLC-loads", lab::Witness::Moves::falls, 4,
                                               "loads that the core's own caches did not hold")},
      .cuda =
          lab::BackendFacts{
              .claim =
                  "A weight in a register that 32 requests use is loaded once instead of 32 times; "
                  "how long requests wait for one another is not in the time.",
              .cost = [](const lab::Knobs& k) { return cost(k, lab::Cost::Level::dram); },
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
