// Ordinary stores: a line is read before it is overwritten, and then displaces one of the table.
#include <immintrin.h>

#include "catalog/ch07/streaming_stores/pair.h"
#include "core/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch07::streaming_stores::cpu {
namespace {

constexpr int kVector = 8;
static_assert(kWidth % kVector == 0);

bool aligned(const float* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % (kVector * sizeof(float)) == 0;
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cpu&) {
  check(aligned(p.table) && aligned(p.out), "rows must start at a multiple of 32 bytes");
  return [p] {
    for (std::int64_t row = 0; row < p.rows; ++row) {
      const float* entry = p.table + std::int64_t{p.index[row]} * kWidth;
      float* out = p.out + row * kWidth;
      for (int i = 0; i < kWidth; i += kVector) _mm256_store_ps(out + i, _mm256_load_ps(entry + i));
    }
  };
}

}  // namespace gauntlet::ch07::streaming_stores::cpu
