// Tensors of a file that is about to be written: planned first, because headers come first, then
// streamed row by row from the views of a model.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/expected.h"
#include "model/files/file_writer.h"
#include "model/tensor.h"
#include "model/weights.h"

namespace gauntlet::model::inline files {

struct PlannedTensor {
  std::string name;
  TensorType type = TensorType::f32;
  std::vector<std::int64_t> shape;  // outermost first
  std::function<void(FileWriter&)> write;

  std::uint64_t bytes() const;
};

/// Told after every piece of work: bytes written so far, and in all.
using WriteProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// Writes the tensors one behind the other, each padded to the alignment.
void write_tensors(const std::vector<PlannedTensor>& tensors, std::uint64_t alignment,
                   FileWriter& file, const WriteProgress& progress);

/// One row as the type, which must hold it exactly: its own, or bf16 or f32 where they do.
void write_row(const Matrix& matrix, std::int64_t row, TensorType type, FileWriter& file);

/// Numbers as f32 or bf16, which must hold them exactly.
void write_values(const float* values, std::size_t count, TensorType type, FileWriter& file);

bool is_exact_in_bf16(const Vector& values);
bool is_exact_in_bf16(const Matrix& matrix);

/// The type that a matrix has in its file.
TensorType tensor_type(WeightType type);

}  // namespace gauntlet::model::inline files
