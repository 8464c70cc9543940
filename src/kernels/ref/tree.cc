#include "kernels/ref/tree.h"

namespace gauntlet::kernels::ref {

std::vector<double> tree_attention(const AttentionInput& input,
                                   std::span<const std::int64_t> seen) {
  const std::size_t dim = input.q.size();
  const auto rows_of = [&](std::span<const double> all) {
    std::vector<double> rows;
    for (const std::int64_t row : seen) {
      const auto one = all.subspan(static_cast<std::size_t>(row) * dim, dim);
      rows.insert(rows.end(), one.begin(), one.end());
    }
    return rows;
  };
  const std::vector<double> keys = rows_of(input.keys);
  const std::vector<double> values = rows_of(input.values);
  return attention(
      {.q = input.q, .keys = keys, .values = values, .sink = input.sink, .window = input.window});
}

}  // namespace gauntlet::kernels::ref
