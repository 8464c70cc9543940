// Each row is loaded when its sum is due; the core looks only as far ahead as its reorder buffer
// reaches.
#include "catalog/ch07/async_prefetch/pair.h"
#include "lab/author/side.h"

namespace gauntlet::ch07::async_prefetch::cpu {

lab::Side baseline(const Params& p, const lab::Cpu&) {
  return [p] {
    for (std::int64_t i = 0; i < p.lookups; ++i) {
      const float* row = p.table + std::int64_t{p.index[i]} * kWidth;
      float sum = 0;
      for (int j = 0; j < kWidth; ++j) sum += row[j] * p.weight[j];
      p.out[i] = sum;
    }
  };
}

}  // namespace gauntlet::ch07::async_prefetch::cpu
