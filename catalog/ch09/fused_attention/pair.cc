#include "catalog/ch09/fused_attention/pair.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "core/os/threads.h"
#include "lab/author/pair.h"
#include "lab/author/product.h"

namespace gauntlet::ch09::fused_attention {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const auto heads = static_cast<double>(knobs["heads"]);
  const auto queries = static_cast<double>(knobs["queries"]);
  const auto keys = static_cast<double>(knobs["keys"]);
  return {.read_bytes = 4 * heads * (queries + 2 * keys) * kHeadDim,
          .write_bytes = 4 * heads * queries * kHeadDim,
          .flops = heads * queries * keys * (4 * kHeadDim + 2),
          .level = lab::Cost::Level::cache};
}

/// What one query gives to each key.
void attend(const Params& p, std::int64_t row, std::vector<double>& to) {
  const float* q = p.q + row * kHeadDim;
  const float* k = p.k + row / p.queries * kHeadDim * p.keys;
  std::ranges::fill(to, 0.0);
  for (int d = 0; d < kHeadDim; ++d) {
    const double factor = double{q[d]} * kScale;
    const float* of_key = k + d * p.keys;
    for (std::int64_t key = 0; key < p.keys; ++key) {
      to[static_cast<std::size_t>(key)] += factor * of_key[key];
    }
  }
  const double top = *std::ranges::max_element(to);
  double sum = 0;
  for (double& x : to) sum += x = std::exp(x - top);
  for (double& x : to) x /= sum;
}

/// Some rows in full, and of every row a weighted sum: what its query gives to each key, times a
/// weighted sum of that key's values.
void reference(const Params& p, lab::Reference& r) {
  const auto rows = r.stratified(p.heads * p.queries, 64);
  const auto values = r.rows("out", kHeadDim, rows, {.length = p.keys});
  const auto norms = r.norms("out");
  parallel_for(
      static_cast<std::int64_t>(rows.size()),
      [&](std::int64_t begin, std::int64_t end) {
        std::vector<double> given(static_cast<std::size_t>(p.keys));
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t row = rows[static_cast<std::size_t>(i)];
          attend(p, row, given);
          const float* v = p.v + row / p.queries * p.keys * kHeadDim;
          double* value = values.data() + i * kHeadDim;
          double* norm = norms.data() + i * kHeadDim;
          for (std::int64_t key = 0; key < p.keys; ++key) {
            for (int d = 0; d < kHeadDim; ++d) {
              const double term = given[static_cast<std::size_t>(key)] * v[key * kHeadDim + d];
              value[d] += term;
              norm[d] += term * term;
            }
          }
          for (int d = 0; d < kHeadDim; ++d) norm[d] = std::sqrt(norm[d]);
        }
      },
      1);

  const lab::RowSums sums = r.row_sums("out");
  std::vector<double> weights2(sums.weights.size());
  std::ranges::transform(sums.weights, weights2.begin(), [](double w) { return w * w; });
  std::vector<lab::WeightedSums> of_value(static_cast<std::size_t>(p.heads * p.keys));
  for (std::size_t key = 0; key < of_value.size(); ++key) {
    of_value[key] = lab::weighted_sums(p.v + key * kHeadDim, sums.weights, weights2);
  }
  parallel_for(
      p.heads * p.queries,
      [&](std::int64_t begin, std::int64_t end) {
        std::vector<double> given(static_cast<std::size_t>(p.keys));
        for (std::int64_t row = begin; row < end; ++row) {
          attend(p, row, given);
          const lab::WeightedSums* of_key = of_value.data() + row / p.queries * p.keys;
          double sum = 0, squares = 0;
          for (std::size_t key = 0; key < given.size(); ++key) {
            sum += given[key] * of_key[key].sum;
            squares += given[key] * given[key] * of_key[key].squares;
          }
          sums.sums[static_cast<std::size_t>(row)] = sum;
          sums.squares[static_cast<std::size_t>(row)] = squares;
        }
      },
      4);
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "three kernels → one",
      .technique = "kernel_fusion",
      .knobs = {{.name = "heads", .cpu = 4, .cuda = 32, .max = 256, .help = "heads"},
                {.name = "queries",
                 .cpu = 1024,
                 .min = 64,
                 .max = 1 << 20,
                 .multiple_of = 64,
                 .help = "queries of each head"},
                {.name = "keys",
                 .cpu = 1024,
                 .min = 128,
                 .max = kMaxKeys,
                 .multiple_of = 128,
                 .help = "keys and values of each head; every query sees all of them"}},
      .cpu = lab::BackendFacts{.claim = "Scores of all queries and keys are more than a core's own "
                                        "caches hold and pass them several times; those of 32 "
                                        "queries stay there.",
                               .cost = cost,
                               .witness = lab::Witness::counter(
                                   "L1-dcache-load-misses", lab::Witness::Moves::falls, 1.2,
                                   "loads that miss the first-level cache")},
      .cuda =
          lab::BackendFacts{
              .claim =
                  "Three kernels write the scores, read and write them for the softmax and read "
                  "them again; a block that keeps those of 32 queries in shared memory moves "
                  "queries, keys, values and results alone, though it reads keys and values "
                  "twice as often through L2.",
              .cost = cost,
              .witness = lab::Witness::counter("dram__bytes.sum", lab::Witness::Moves::falls, 4,
                                               "bytes between memory and L2, either way")},
      .bind =
          [](lab::Binder& b) {
            const auto heads = b.knob("heads"), queries = b.knob("queries"), keys = b.knob("keys");
            return Params{
                // Scores of some size, so that the softmax prefers some keys to others.
                .q = b.input<float>("q", heads * queries * kHeadDim, lab::Fill::uniform(-4, 4)),
                .k = b.input<float>("k", heads * kHeadDim * keys, lab::Fill::uniform()),
                .v = b.input<float>("v", heads * keys * kHeadDim, lab::Fill::uniform()),
                .scores = b.scratch<float>("scores", heads * queries * keys),
                .out = b.output<float>("out", heads * queries * kHeadDim),
                .heads = heads,
                .queries = queries,
                .keys = keys};
          },
      .reference = reference,
  };
}

}  // namespace gauntlet::ch09::fused_attention
