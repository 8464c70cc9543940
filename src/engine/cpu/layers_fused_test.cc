// Do fused layers compute the scalar ones whatever they share, repeat or overlap?
#include "engine/cpu/layers_cases.h"

namespace gauntlet::engine::cpu {
namespace {

TEST(LayersFused, are_the_scalar_ones_and_the_same_bits_however_work_is_shared) {
  const auto expected = residuals_of({.threads = 1, .stages = Stages::apart}, 37);
  expect_scalar(expected);
  // One and two threads take whole KV heads; three and four cannot. Chunks of up to four repeat
  // norms and routing.
  for (const Stages stages : {Stages::overlapped, Stages::apart}) {
    for (const auto& [threads, chunk] :
         {std::pair{1, 4}, {2, 1}, {2, 4}, {2, 37}, {3, 4}, {3, 5}, {4, 4}}) {
      EXPECT_EQ(residuals_of({.threads = threads, .stages = stages}, chunk), expected)
          << threads << " threads, chunks of " << chunk;
    }
  }
}

}  // namespace
}  // namespace gauntlet::engine::cpu
