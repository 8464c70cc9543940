// What a matrix product must be without computing all of it: some of its rows, and a weighted sum
// of every row, which costs two products with a vector (Freivalds' check).
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "lab/author/reference.h"

namespace gauntlet::lab::inline author {

/// C = A·B, `batch` times.
struct Product {
  const float* a = nullptr;  // [batch, m, k]
  const float* b = nullptr;  // [batch, k, n]
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t batch = 1;
};

/// Expects the products in output `name`, [batch, m, n]: one row out of `stride`, and sums over
/// all. The length of the sums in `rounding` is set to k.
void expect_product(Reference& reference, const std::string& name, const Product& product,
                    Rounding rounding, std::int64_t stride);

/// Σ x·w and Σ x²·w2, as the two sums of a row need them.
struct WeightedSums {
  double sum = 0;
  double squares = 0;
};
WeightedSums weighted_sums(const float* x, std::span<const double> w, std::span<const double> w2);

}  // namespace gauntlet::lab::inline author
