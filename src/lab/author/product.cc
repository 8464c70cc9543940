#include "lab/author/product.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/os/threads.h"

namespace gauntlet::lab::inline author {
namespace {

// Float64 sums keep their order, so that only sums side by side can share a vector.
constexpr std::int64_t kLanes = 8;

double total(const double (&lanes)[kLanes]) {
  double sum = 0;
  for (double lane : lanes) sum += lane;
  return sum;
}

/// One row of C and the squared norms of its terms: values += a·B, norms += a²·B².
void multiply_row(const float* a, const float* b, const Product& p, double* values, double* norms) {
  for (std::int64_t i = 0; i < p.k; ++i) {
    const double factor = a[i], factor2 = factor * factor;
    const float* row = b + i * p.n;
    for (std::int64_t column = 0; column < p.n; ++column) {
      const double x = row[column];
      values[column] += factor * x;
      norms[column] += factor2 * (x * x);
    }
  }
  for (std::int64_t column = 0; column < p.n; ++column) norms[column] = std::sqrt(norms[column]);
}

}  // namespace

WeightedSums weighted_sums(const float* x, std::span<const double> w, std::span<const double> w2) {
  double sums[kLanes] = {}, squares[kLanes] = {};
  const auto count = static_cast<std::int64_t>(w.size());
  const std::int64_t whole = count / kLanes * kLanes;
  for (std::int64_t i = 0; i < whole; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const double value = x[i + lane];
      sums[lane] += value * w[i + lane];
      squares[lane] += value * value * w2[i + lane];
    }
  }
  for (std::int64_t i = whole; i < count; ++i) {
    const double value = x[i];
    sums[0] += value * w[i];
    squares[0] += value * value * w2[i];
  }
  return {total(sums), total(squares)};
}

void expect_product(Reference& reference, const std::string& name, const Product& p,
                    Rounding rounding, std::int64_t stride) {
  rounding.length = p.k;
  const auto rows = reference.stratified(p.batch * p.m, stride);
  const auto values = reference.rows(name, p.n, rows, rounding);
  const auto norms = reference.norms(name);
  parallel_for(
      static_cast<std::int64_t>(rows.size()),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t row = rows[static_cast<std::size_t>(i)];
          multiply_row(p.a + row * p.k, p.b + row / p.m * p.k * p.n, p, &values[i * p.n],
                       &norms[i * p.n]);
        }
      },
      2);

  const RowSums sums = reference.row_sums(name);
  std::vector<double> weights2(sums.weights.size());
  std::ranges::transform(sums.weights, weights2.begin(), [](double w) { return w * w; });
  // B·w and B²·w², of all products, then each row of A times them.
  const auto inner = static_cast<std::size_t>(p.batch * p.k);
  std::vector<double> bw(inner), b2w2(inner);
  const std::int64_t grain = std::max<std::int64_t>(2, (1 << 16) / std::max(p.n, p.k));
  parallel_for(
      p.batch * p.k,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const WeightedSums of_row = weighted_sums(p.b + i * p.n, sums.weights, weights2);
          bw[static_cast<std::size_t>(i)] = of_row.sum;
          b2w2[static_cast<std::size_t>(i)] = of_row.squares;
        }
      },
      grain);
  parallel_for(
      p.batch * p.m,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          const std::int64_t first = row / p.m * p.k;
          const auto k = static_cast<std::size_t>(p.k);
          const WeightedSums of_row =
              weighted_sums(p.a + row * p.k, {bw.data() + first, k}, {b2w2.data() + first, k});
          sums.sums[static_cast<std::size_t>(row)] = of_row.sum;
          sums.squares[static_cast<std::size_t>(row)] = of_row.squares;
        }
      },
      grain);
}

}  // namespace gauntlet::lab::inline author
