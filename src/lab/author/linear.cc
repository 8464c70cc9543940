#include "lab/author/linear.h"

#include <algorithm>
#include <vector>

#include "core/check.h"
#include "core/os/threads.h"

namespace gauntlet::lab::inline author {

void expect_linear(Reference& reference, const std::string& name, const Product& product,
                   Rounding rounding, std::int64_t stride) {
  check(product.batch == 1, "a linear layer is one product");
  const std::int64_t n = product.n, k = product.k;
  std::vector<float> rows(static_cast<std::size_t>(k * n));
  // In squares of a cache line each way.
  constexpr std::int64_t kSquare = 16;
  parallel_for((k + kSquare - 1) / kSquare,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t left = 0; left < n; left += kSquare) {
                   for (std::int64_t i = begin * kSquare; i < std::min(end * kSquare, k); ++i) {
                     for (std::int64_t column = left; column < std::min(left + kSquare, n);
                          ++column) {
                       rows[static_cast<std::size_t>(i * n + column)] = product.b[column * k + i];
                     }
                   }
                 }
               },
               4);
  Product by_rows = product;
  by_rows.b = rows.data();
  expect_product(reference, name, by_rows, rounding, stride);
}

}  // namespace gauntlet::lab::inline author
