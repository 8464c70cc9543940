// Do layers without fusion compute the scalar ones, with the bits of fused layers?
#include "engine/cpu/layers_cases.h"

namespace gauntlet::engine::cpu {
namespace {

TEST(LayersOpByOp, are_the_scalar_ones_with_the_bits_of_fused_layers) {
  for (const Activations activations : {Activations::f32, Activations::int8}) {
    const auto fused = residuals_of({.threads = 1, .activations = activations}, 37);
    for (const int threads : {1, 3}) {
      for (const std::int64_t chunk : {1, 5, 37}) {
        const auto got = residuals_of(
            {.threads = threads, .activations = activations, .fusion = Fusion::op_by_op}, chunk);
        EXPECT_EQ(got, fused) << threads << " threads, chunks of " << chunk;
        if (activations == Activations::f32) expect_scalar(got);
      }
    }
  }
}

}  // namespace
}  // namespace gauntlet::engine::cpu
