// Products and exponentials of some rows, as both sides on a CPU use them: 4 x 16 sums in registers
// over tiles in the first-level cache, and an exponential that fits vectors.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>

#include "catalog/ch10/flash_attention/pair.h"

namespace gauntlet::ch10::flash_attention::cpu {

/// Rows that lie `pitch` words apart.
template <class T>
struct Rows {
  T* data;
  std::int64_t pitch;
};

using Vector [[gnu::vector_size(32), gnu::aligned(4), gnu::may_alias]] = float;
using Words [[gnu::vector_size(32), gnu::aligned(4)]] = std::int32_t;
inline constexpr int kLanes = 8;
inline constexpr int kSumRows = 4;
inline constexpr int kSumColumns = 16;
inline constexpr int kDepth = 128;

/// c += a·b of `rows` rows, a multiple of 4, and `columns` columns, one of 16.
inline void add_product(Rows<const float> a, Rows<const float> b, Rows<float> c, std::int64_t rows,
                        std::int64_t columns, std::int64_t depth) {
  float strip[kDepth][kSumColumns];  // of b: read once per strip, however far its rows are apart
  for (std::int64_t first = 0; first < depth; first += kDepth) {
    const std::int64_t count = std::min<std::int64_t>(kDepth, depth - first);
    for (std::int64_t column = 0; column < columns; column += kSumColumns) {
      for (std::int64_t i = 0; i < count; ++i) {
        std::copy_n(b.data + (first + i) * b.pitch + column, kSumColumns, strip[i]);
      }
      for (std::int64_t row = 0; row < rows; row += kSumRows) {
        Vector sums[kSumRows][2] = {};
        for (std::int64_t i = 0; i < count; ++i) {
          const auto* words = reinterpret_cast<const Vector*>(strip[i]);
          for (int y = 0; y < kSumRows; ++y) {
            const float factor = a.data[(row + y) * a.pitch + first + i];
            for (int x = 0; x < 2; ++x) sums[y][x] += factor * words[x];
          }
        }
        for (int y = 0; y < kSumRows; ++y) {
          auto* to = reinterpret_cast<Vector*>(c.data + (row + y) * c.pitch + column);
          for (int x = 0; x < 2; ++x) to[x] += sums[y][x];
        }
      }
    }
  }
}

/// e^x for x of at most 0, to about an ulp: 2^whole times a polynomial of what is left.
inline Vector exp_of(Vector x) {
  constexpr float kWholes = 3 << 22;  // added to it, floats of this size lose their fraction
  const Vector least = Vector{} - 87.0f, clamped = x > least ? x : least;
  const Vector t = clamped * 1.44269504f, shifted = t + kWholes, f = t - (shifted - kWholes);
  Vector y = f * 1.52527338e-5f + 1.54035304e-4f;
  y = y * f + 1.33335581e-3f;
  y = y * f + 9.61812911e-3f;
  y = y * f + 5.55041087e-2f;
  y = y * f + 2.40226507e-1f;
  y = y * f + 6.93147181e-1f;
  y = y * f + 1.0f;
  return std::bit_cast<Vector>(std::bit_cast<Words>(y) + (std::bit_cast<Words>(shifted) << 23));
}

inline float greatest(const Vector* words, std::int64_t count) {
  Vector most = words[0];
  for (std::int64_t i = 1; i < count; ++i) most = words[i] > most ? words[i] : most;
  float top = most[0];
  for (int lane = 1; lane < kLanes; ++lane) top = std::max(top, most[lane]);
  return top;
}

/// words = e^((words - top)·kScale); returns their sum.
inline float exponentials(Vector* words, std::int64_t count, float top) {
  Vector sums = {};
  for (std::int64_t i = 0; i < count; ++i) {
    words[i] = exp_of((words[i] - top) * kScale);
    sums += words[i];
  }
  float sum = 0;
  for (int lane = 0; lane < kLanes; ++lane) sum += sums[lane];
  return sum;
}

}  // namespace gauntlet::ch10::flash_attention::cpu
