// Are parts added in the order of ranks, to the bit, and do columns come to their places and
// nowhere else?
#include "kernels/cuda/rows/peer_rows.h"

#include "core/random.h"
#include "kernels/cuda/device_test.h"

namespace gauntlet::kernels::cuda::inline rows {
namespace {

std::vector<float> part_of(int rank, std::size_t count) {
  const Random random(static_cast<std::uint64_t>(rank) + 40);
  std::vector<float> values(count);
  // Of magnitudes so far apart that the order of a sum shows.
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = random.uniform(-1, 1, i) * (rank % 2 == 0 ? 1.0f : 1e4f);
  }
  return values;
}

TEST(PeerRowsOnGpu, parts_are_added_in_the_order_of_ranks) {
  GAUNTLET_NEEDS_GPU();
  for (const int ranks : {1, 2, 3, kMostPeers}) {
    for (const std::size_t count : {0u, 4u, 1028u, 2880u * 300}) {
      std::vector<std::vector<float>> parts;
      std::vector<OnDevice<float>> on_device;
      for (int r = 0; r < ranks; ++r) {
        parts.push_back(part_of(r, count + 4));
        on_device.emplace_back(parts.back());
      }
      // In place of the first part, as a rank's own is.
      AddParts work{
          .num_ranks = ranks, .out = on_device[0].get(), .count = static_cast<std::int64_t>(count)};
      for (int r = 0; r < ranks; ++r) work.parts[r] = on_device[static_cast<std::size_t>(r)].get();
      add_parts(work, {});
      const auto got = on_device[0].values();
      for (std::size_t i = 0; i < got.size(); ++i) {
        float wanted = parts[0][i];
        for (int r = 1; r < ranks && i < count; ++r)
          wanted += parts[static_cast<std::size_t>(r)][i];
        ASSERT_EQ(got[i], wanted) << ranks << " ranks, " << i << " of " << count;
      }
    }
  }
}

TEST(PeerRowsOnGpu, columns_are_taken_and_put_where_they_belong) {
  GAUNTLET_NEEDS_GPU();
  for (const auto& [rows, stride] : {std::pair{1, 201088}, {3, 300}, {256, 1000}}) {
    const auto count = static_cast<std::size_t>(rows) * static_cast<std::size_t>(stride);
    const auto x = part_of(0, count);
    const OnDevice<float> from(x), to(std::vector<float>(count, -7.0f));
    // Parts of different widths, one of none, and columns at the end that nobody has.
    const std::int64_t begins[] = {0, 64, 64, stride / 2, stride - 1};
    std::vector<OnDevice<float>> taken;
    PutColumns put{.x = to.get(), .stride = stride, .num_rows = rows, .num_parts = 4};
    for (int p = 0; p < 4; ++p) {
      const std::int64_t width = begins[p + 1] - begins[p];
      taken.emplace_back(static_cast<std::size_t>(rows * width + 1));
      put.parts[p] = {.values = taken.back().get(), .first = begins[p], .width = width};
      take_columns({.x = from.get(), .stride = stride, .num_rows = rows, .part = put.parts[p]}, {});
    }
    put_columns(put, {});
    const auto got = to.values();
    for (std::size_t i = 0; i < count; ++i) {
      const bool is_last =
          i % static_cast<std::size_t>(stride) + 1 == static_cast<std::size_t>(stride);
      ASSERT_EQ(got[i], is_last ? -7.0f : x[i]) << i << " of rows of " << stride;
    }
  }
}

}  // namespace
}  // namespace gauntlet::kernels::cuda::inline rows
