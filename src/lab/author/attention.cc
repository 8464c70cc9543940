#include "lab/author/attention.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "core/os/threads.h"
#include "lab/author/product.h"

namespace gauntlet::lab::inline author {
namespace {

/// What one query gives to each key.
void attend(const Attention& a, std::int64_t row, std::vector<double>& to) {
  const float* q = a.q + row * a.head_dim;
  const float* k = a.k + row / a.queries * a.head_dim * a.keys;
  std::ranges::fill(to, 0.0);
  for (std::int64_t d = 0; d < a.head_dim; ++d) {
    const double factor = q[d] * a.scale;
    const float* of_key = k + d * a.keys;
    for (std::int64_t key = 0; key < a.keys; ++key) {
      to[static_cast<std::size_t>(key)] += factor * of_key[key];
    }
  }
  const double top = *std::ranges::max_element(to);
  double sum = 0;
  for (double& x : to) sum += x = std::exp(x - top);
  for (double& x : to) x /= sum;
}

void expect_rows(Reference& reference, const std::string& name, const Attention& a,
                 std::int64_t stride) {
  const auto rows = reference.stratified(a.heads * a.queries, stride);
  const auto values = reference.rows(name, a.head_dim, rows, {.length = a.keys});
  const auto norms = reference.norms(name);
  parallel_for(
      static_cast<std::int64_t>(rows.size()),
      [&](std::int64_t begin, std::int64_t end) {
        std::vector<double> given(static_cast<std::size_t>(a.keys));
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t row = rows[static_cast<std::size_t>(i)];
          attend(a, row, given);
          const float* v = a.v + row / a.queries * a.keys * a.head_dim;
          double* value = values.data() + i * a.head_dim;
          double* norm = norms.data() + i * a.head_dim;
          for (std::int64_t key = 0; key < a.keys; ++key) {
            for (std::int64_t d = 0; d < a.head_dim; ++d) {
              const double term = given[static_cast<std::size_t>(key)] * v[key * a.head_dim + d];
              value[d] += term;
              norm[d] += term * term;
            }
          }
          for (std::int64_t d = 0; d < a.head_dim; ++d) norm[d] = std::sqrt(norm[d]);
        }
      },
      1);
}

/// What a row's query gives to each key, times a weighted sum of that key's values.
void expect_sums(Reference& reference, const std::string& name, const Attention& a) {
  const RowSums sums = reference.row_sums(name);
  std::vector<double> weights2(sums.weights.size());
  std::ranges::transform(sums.weights, weights2.begin(), [](double w) { return w * w; });
  std::vector<WeightedSums> of_value(static_cast<std::size_t>(a.heads * a.keys));
  for (std::size_t key = 0; key < of_value.size(); ++key) {
    of_value[key] =
        weighted_sums(a.v + static_cast<std::int64_t>(key) * a.head_dim, sums.weights, weights2);
  }
  parallel_for(
      a.heads * a.queries,
      [&](std::int64_t begin, std::int64_t end) {
        std::vector<double> given(static_cast<std::size_t>(a.keys));
        for (std::int64_t row = begin; row < end; ++row) {
          attend(a, row, given);
          const WeightedSums* of_key = of_value.data() + row / a.queries * a.keys;
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

void expect_attention(Reference& reference, const std::string& name, const Attention& attention,
                      std::int64_t stride) {
  expect_rows(reference, name, attention, stride);
  expect_sums(reference, name, attention);
}

}  // namespace gauntlet::lab::inline author
