// Rows of random weights, made as they are read. An element depends on its matrix's key and its
// place alone. Their standard deviation is 1 / sqrt(cols), so that a product with a normalised
// vector is of the order of one.
#pragma once
#include "model/weights.h"

namespace gauntlet::model {

/// Uniform numbers; the matrix is of type bf16.
void read_random_row_bf16(const Matrix& matrix, std::int64_t row, std::uint16_t* out);

/// All nibbles equally often, scales of two neighbouring powers; the matrix is of type mxfp4.
void read_random_row_mxfp4(const Matrix& matrix, std::int64_t row, std::uint8_t* nibbles,
                           std::uint8_t* scale_bytes);

/// Either as float.
void read_random_row(const Matrix& matrix, std::int64_t row, float* out);

}  // namespace gauntlet::model
