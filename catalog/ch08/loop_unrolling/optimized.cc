// 32 accumulators, four vectors of eight: additions that do not wait for one another.
#include "catalog/ch08/loop_unrolling/pair.h"
#include "lab/side.h"

namespace gauntlet::ch08::loop_unrolling::cpu {
namespace {

constexpr int kAccumulators = 32;

}  // namespace

lab::Side optimized(const Params& p, const lab::Cpu&) {
  return [p] {
    for (std::int64_t row = 0; row < p.rows; ++row) {
      const float* in = p.in + row * p.columns;
      float sum[kAccumulators] = {};
      for (std::int64_t i = 0; i < p.columns; i += kAccumulators) {
        for (int lane = 0; lane < kAccumulators; ++lane) sum[lane] += in[i + lane] * in[i + lane];
      }
      for (int width = kAccumulators / 2; width > 0; width /= 2) {
        for (int lane = 0; lane < width; ++lane) sum[lane] += sum[lane + width];
      }
      p.out[row] = sum[0];
    }
  };
}

}  // namespace gauntlet::ch08::loop_unrolling::cpu
