// Rows of random weights, made as they are read. An element depends on its matrix's key and its
// place alone. Their standard deviation is 1 / sqrt(cols), so that a product with a normalised
// vector is of the order of one.
#pragma once
#include "model/weights.h"

namespace gauntlet::model {

/// Of a random bf16 matrix: an element is a random 16-bit integer times this, its float cut to bf16.
float random_bf16_step(std::int64_t cols);

/// How random MXFP4 reaches its standard deviation: scales are the lower power of two or the next.
struct RandomMxfp4Scales {
  std::uint8_t lower = 0;
  std::uint32_t upper_of_256 = 0;  // how often the next one is taken
};
RandomMxfp4Scales random_mxfp4_scales(std::int64_t cols);

/// Uniform numbers; the matrix is of type bf16.
void read_random_row_bf16(const Matrix& matrix, std::int64_t row, std::uint16_t* out);

/// All nibbles equally often, scales of two neighbouring powers; the matrix is of type mxfp4.
void read_random_row_mxfp4(const Matrix& matrix, std::int64_t row, std::uint8_t* nibbles,
                           std::uint8_t* scale_bytes);

/// Either as float.
void read_random_row(const Matrix& matrix, std::int64_t row, float* out);

}  // namespace gauntlet::model
