#include "model/tensor.h"

#include <fmt/format.h>

#include <functional>
#include <numeric>
#include <optional>

#include "core/check.h"
#include "model/files/printable.h"
#include "model/mxfp4.h"
#include "model/quantized.h"

namespace gauntlet::model {
namespace {

std::optional<WeightType> as_weight_type(TensorType type) {
  switch (type) {
    case TensorType::f32:
      return WeightType::f32;
    case TensorType::f16:
      return WeightType::f16;
    case TensorType::bf16:
      return WeightType::bf16;
    case TensorType::q8_0:
      return WeightType::q8_0;
    case TensorType::mxfp4:
      return WeightType::mxfp4;
    case TensorType::u8:
    case TensorType::other:
      return std::nullopt;
  }
  return std::nullopt;
}

Matrix stored_matrix(WeightType type, const std::byte* data, std::int64_t rows, std::int64_t cols) {
  return {.type = type,
          .rows = rows,
          .cols = cols,
          .data = data,
          .row_stride_bytes = stored_row_bytes(type, cols),
          .col_stride_bytes = is_block_type(type) ? 0 : element_bytes(type),
          .order = Mxfp4Order::halves};
}

}  // namespace

std::string describe_shape(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

Expected<void> TensorTable::add(Tensor tensor) {
  if (const Tensor* other = find(tensor.name)) {
    return Error{.message = fmt::format("{}: tensor '{}' is in {} already", tensor.where,
                                        shown(tensor.name), other->where)};
  }
  total_bytes_ += static_cast<std::int64_t>(tensor.bytes);
  std::string name = tensor.name;
  tensors_.emplace(std::move(name), std::move(tensor));
  return {};
}

const Tensor* TensorTable::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

const Tensor* TensorBinder::tensor(const std::string& name,
                                   const std::vector<std::int64_t>& shape) {
  if (failed()) return nullptr;
  const Tensor* found = table_.find(name);
  if (!found) {
    refuse(Error{.message = fmt::format("{}: tensor '{}' is missing", table_.where(), name)});
    return nullptr;
  }
  if (found->shape != shape) {
    refuse(*found, fmt::format("has shape {} instead of {}", describe_shape(found->shape),
                               describe_shape(shape)));
    return nullptr;
  }
  return found;
}

std::optional<WeightType> TensorBinder::weight_type(const Tensor& tensor, std::int64_t cols) {
  const auto type = as_weight_type(tensor.type);
  if (!type) {
    refuse(tensor, fmt::format("has type {}, which weights cannot have", tensor.type_name));
  } else if (cols % block_values(*type) != 0) {
    refuse(tensor, fmt::format("has rows of {}, not a multiple of the {} values of a block", cols,
                               block_values(*type)));
    return std::nullopt;
  }
  return type;
}

Matrix TensorBinder::matrix(const std::string& name, const std::vector<std::int64_t>& shape) {
  const Tensor* found = tensor(name, shape);
  const std::int64_t cols = shape.back();
  const auto type = found ? weight_type(*found, cols) : std::nullopt;
  if (!type) return {};
  // The tensor is as large as its shape says, so the product cannot overflow.
  const std::int64_t rows =
      std::accumulate(shape.begin(), shape.end() - 1, std::int64_t{1}, std::multiplies<>());
  return stored_matrix(*type, found->data, rows, cols);
}

Vector TensorBinder::vector(const std::string& name, const std::vector<std::int64_t>& shape) {
  const Tensor* found = tensor(name, shape);
  if (!found) return {};
  const auto type = as_weight_type(found->type);
  if (!type || is_block_type(*type)) {
    refuse(*found, fmt::format("has type {} instead of a float", found->type_name));
    return {};
  }
  const auto count = static_cast<std::int64_t>(found->bytes) / element_bytes(*type);
  Vector values(static_cast<std::size_t>(count));
  const Matrix row = stored_matrix(*type, found->data, 1, count);
  row.read_row(0, values.data());
  return values;
}

void TensorBinder::refuse(const Tensor& tensor, const std::string& what) {
  refuse(
      Error{.message = fmt::format("{}: tensor '{}' {}", tensor.where, shown(tensor.name), what)});
}

void TensorBinder::refuse(Error error) {
  if (!failed()) message_ = std::move(error.message);
}

Matrix rows_of(const Matrix& matrix, std::int64_t first, std::int64_t rows) {
  if (matrix.rows == 0) return {};  // of a tensor that was refused
  check(first >= 0 && rows >= 0 && first + rows <= matrix.rows, "a view lies inside its matrix");
  Matrix view = matrix;
  view.rows = rows;
  if (matrix.is_random()) {
    view.random_first_row += first;
    return view;
  }
  view.data += first * matrix.row_stride_bytes;
  if (view.scales) view.scales += first * matrix.scale_row_stride_bytes;
  return view;
}

Matrix columns_of(const Matrix& matrix, std::int64_t first, std::int64_t cols) {
  check(first >= 0 && cols >= 0 && first + cols <= matrix.cols, "a view lies inside its matrix");
  Matrix view = matrix;
  view.cols = cols;
  if (matrix.is_random()) {
    view.random_first_col += first;
    if (view.random_cols == 0) view.random_cols = matrix.cols;
    check(view.random_first_col % kMxfp4Block == 0, "a view of random weights begins at a block");
    return view;
  }
  if (!is_block_type(matrix.type)) {
    view.data += first * matrix.col_stride_bytes;
    return view;
  }
  const std::int64_t block = block_values(matrix.type);
  check(first % block == 0 && cols % block == 0, "a view cuts no block");
  if (matrix.scales) {
    view.data += first / block * kMxfp4NibbleBytes;
    view.scales += first / block;
  } else {
    view.data += stored_row_bytes(matrix.type, first);
  }
  return view;
}

}  // namespace gauntlet::model
