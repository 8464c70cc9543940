#include "model/tensor.h"

#include <fmt/format.h>

#include <optional>

#include "core/check.h"
#include "model/mxfp4.h"
#include "model/quantized.h"

namespace gauntlet::model {
namespace {

std::optional<WeightType> weight_type(TensorType type) {
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

}  // namespace

std::string describe_shape(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

Expected<void> TensorTable::add(Tensor tensor) {
  if (const Tensor* other = find(tensor.name)) {
    return Error{.message = fmt::format("{}: tensor '{}' is in {} already", tensor.where,
                                        tensor.name, other->where)};
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

Matrix TensorBinder::matrix(const std::string& name, std::int64_t rows, std::int64_t cols) {
  const Tensor* found = tensor(name, {rows, cols});
  if (!found) return {};
  const auto type = weight_type(found->type);
  if (!type) {
    refuse(*found, fmt::format("has type {}, which no matrix can have", found->type_name));
    return {};
  }
  if (is_block_type(*type) && cols % block_values(*type) != 0) {
    refuse(*found, fmt::format("has rows of {}, not a multiple of the {} values of a block", cols,
                               block_values(*type)));
    return {};
  }
  return {.type = *type,
          .rows = rows,
          .cols = cols,
          .data = found->data,
          .row_stride_bytes = stored_row_bytes(*type, cols),
          .col_stride_bytes = is_block_type(*type) ? 0 : element_bytes(*type),
          .order = Mxfp4Order::halves};
}

Vector TensorBinder::vector(const std::string& name, const std::vector<std::int64_t>& shape) {
  const Tensor* found = tensor(name, shape);
  if (!found) return {};
  const auto type = weight_type(found->type);
  if (!type || is_block_type(*type)) {
    refuse(*found, fmt::format("has type {} instead of a float", found->type_name));
    return {};
  }
  const auto count = static_cast<std::int64_t>(found->bytes) / element_bytes(*type);
  Vector values(static_cast<std::size_t>(count));
  const Matrix row{.type = *type,
                   .rows = 1,
                   .cols = count,
                   .data = found->data,
                   .row_stride_bytes = static_cast<std::int64_t>(found->bytes),
                   .col_stride_bytes = element_bytes(*type)};
  row.read_row(0, values.data());
  return values;
}

void TensorBinder::refuse(const Tensor& tensor, const std::string& what) {
  refuse(Error{.message = fmt::format("{}: tensor '{}' {}", tensor.where, tensor.name, what)});
}

void TensorBinder::refuse(Error error) {
  if (!failed()) message_ = std::move(error.message);
}

Matrix rows_of(const Matrix& matrix, std::int64_t first, std::int64_t rows) {
  if (matrix.rows == 0) return {};  // of a tensor that was refused
  check(first >= 0 && rows >= 0 && first + rows <= matrix.rows, "a view lies inside its matrix");
  Matrix view = matrix;
  view.rows = rows;
  view.data += first * matrix.row_stride_bytes;
  if (view.scales) view.scales += first * matrix.scale_row_stride_bytes;
  return view;
}

}  // namespace gauntlet::model
