// Tensors of a model's files by name, and how a layout takes them: by name and shape, with the
// first inconsistency kept.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/expected.h"
#include "model/weights.h"

namespace gauntlet::model {

enum class TensorType { f32, f16, bf16, u8, q8_0, mxfp4, other };

struct Tensor {
  std::string name;
  std::string where;  // the file, for people
  TensorType type = TensorType::other;
  std::string type_name;            // as the file calls it
  std::vector<std::int64_t> shape;  // outermost first
  const std::byte* data = nullptr;
  std::uint64_t bytes = 0;
};

/// "[32, 256, 8, 16]"
std::string describe_shape(const std::vector<std::int64_t>& shape);

class TensorTable {
 public:
  /// `where` names the whole model in errors about what is in none of its files.
  explicit TensorTable(std::string where) : where_(std::move(where)) {}

  Expected<void> add(Tensor tensor);
  const Tensor* find(const std::string& name) const;  // null: not there
  const std::string& where() const { return where_; }
  std::int64_t total_bytes() const { return total_bytes_; }

 private:
  std::string where_;
  std::map<std::string, Tensor> tensors_;
  std::int64_t total_bytes_ = 0;
};

/// What a layout is built with. After the first error every answer is empty, so a layout reads as
/// a list of names and asks for the error at its end.
class TensorBinder {
 public:
  explicit TensorBinder(const TensorTable& table) : table_(table) {}

  bool has(const std::string& name) const { return table_.find(name) != nullptr; }
  /// A tensor of this shape as one matrix: the last dimension is a row, the others count rows.
  Matrix matrix(const std::string& name, const std::vector<std::int64_t>& shape);
  /// The numbers of a tensor of this shape, as float.
  Vector vector(const std::string& name, const std::vector<std::int64_t>& shape);
  /// The type of a matrix's elements; nullopt and an error when it holds something else.
  std::optional<WeightType> weight_type(const Tensor& tensor, std::int64_t cols);
  /// The tensor when it is there with this shape; otherwise null, and an error.
  const Tensor* tensor(const std::string& name, const std::vector<std::int64_t>& shape);

  void refuse(const Tensor& tensor, const std::string& what);
  void refuse(Error error);
  bool failed() const { return !message_.empty(); }
  Error error() const { return {.message = message_}; }

 private:
  const TensorTable& table_;
  std::string message_;
};

/// A view of rows [first, first + rows) of a matrix.
Matrix rows_of(const Matrix& matrix, std::int64_t first, std::int64_t rows);
/// A view of columns [first, first + cols); of block types and random weights whole blocks of 32.
Matrix columns_of(const Matrix& matrix, std::int64_t first, std::int64_t cols);

}  // namespace gauntlet::model
