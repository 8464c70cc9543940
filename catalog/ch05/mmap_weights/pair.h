// What does it cost to copy a checkpoint into memory that the page cache holds already?
#pragma once
#include <cstdint>
#include <memory>

#include "core/storage/stored_words.h"

namespace gauntlet::ch05::mmap_weights {

struct Params {
  std::shared_ptr<StoredWords> stored;
  const std::int32_t* start;  // [1]: the page of the file where the weights begin
  const std::int8_t* x;       // [columns]
  std::int32_t* out;          // [rows]: the weights, [rows, columns] in the file, times x
  std::int64_t rows;
  std::int64_t columns;
};

/// The first use of loaded weights: a product with a vector.
inline void multiply(const Params& p, const std::int8_t* weights) {
  for (std::int64_t row = 0; row < p.rows; ++row) {
    const std::int8_t* w = weights + row * p.columns;
    std::int32_t sum = 0;
    for (std::int64_t i = 0; i < p.columns; ++i) sum += std::int32_t{w[i]} * p.x[i];
    p.out[row] = sum;
  }
}

}  // namespace gauntlet::ch05::mmap_weights
