// Can a product begin before all of its rows have been gathered?
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/ranks/link.h"

namespace gauntlet::ch04::tensor_parallel_async {

struct Params {
  const float* inputs;   // [chunks, rows, depth]: this rank's rows of every chunk
  const float* weights;  // [depth, width]: this rank's columns of the layer
  float* gathered;       // [chunks, ranks, rows, depth], or ranks before chunks
  float* outputs;        // [chunks, ranks, rows, width]
  std::int64_t chunks;
  std::int64_t rows;  // of a rank in a chunk
  std::int64_t depth;
  std::int64_t width;
  gauntlet::ranks::Fabric fabric;
  int num_ranks;

  /// Values of this rank's rows in a chunk.
  std::int64_t part() const { return rows * depth; }
  std::span<const std::byte> own_bytes(std::int64_t chunk, std::int64_t count) const {
    return std::as_bytes(
        std::span(inputs + chunk * part(), static_cast<std::size_t>(count * part())));
  }
  std::span<std::byte> gathered_bytes(std::int64_t chunk, std::int64_t count) const {
    return std::as_writable_bytes(std::span(gathered + chunk * num_ranks * part(),
                                            static_cast<std::size_t>(count * num_ranks * part())));
  }
};

/// Rows of one rank in a chunk, from wherever they are, times the weights.
inline void multiply(const Params& p, std::int64_t chunk, int rank, const float* rows) {
  float* outputs = p.outputs + (chunk * p.num_ranks + rank) * p.rows * p.width;
  for (std::int64_t row = 0; row < p.rows; ++row) {
    float* out = outputs + row * p.width;
    for (std::int64_t i = 0; i < p.width; ++i) out[i] = 0;
    for (std::int64_t k = 0; k < p.depth; ++k) {
      const float value = rows[row * p.depth + k];
      const float* weights = p.weights + k * p.width;
      for (std::int64_t i = 0; i < p.width; ++i) out[i] += value * weights[i];
    }
  }
}

}  // namespace gauntlet::ch04::tensor_parallel_async
