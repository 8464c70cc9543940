// GGUF: metadata by key, then a list of tensors, then their data. Values are read where they lie.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/expected.h"
#include "model/files/model_files.h"
#include "model/tensor.h"

namespace gauntlet::model::inline files {

/// As the format numbers them.
enum class GgufType : std::uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  text,
  array,
  u64,
  i64,
  f64
};

/// ggml's numbers of the tensor types that are read.
enum class GgmlType : std::uint32_t { f32 = 0, f16 = 1, q8_0 = 8, bf16 = 30, mxfp4 = 39 };

inline constexpr std::uint32_t kGgufVersion = 3;
inline constexpr std::uint64_t kGgufAlignment = 32;  // of tensor data, unless the file says another

/// The checked contents of a file. Texts and tensors point into it.
class GgufFile {
 public:
  static Expected<GgufFile> parse(const ModelFile& file);

  const std::string& where() const { return where_; }
  bool has(const std::string& key) const { return values_.contains(key); }
  std::vector<std::string> keys() const;

  // Nullopt: the key is missing, or holds something else. Integers of every width are integers;
  // numbers are integers and floats. A float32 is read as the shortest decimal that rounds to it,
  // so that 1e-5 is 1e-5.
  std::optional<std::int64_t> integer(const std::string& key) const;
  std::optional<double> number(const std::string& key) const;
  std::optional<bool> flag(const std::string& key) const;
  std::optional<std::string_view> text(const std::string& key) const;
  std::optional<std::vector<std::int64_t>> integers(const std::string& key) const;
  std::optional<std::vector<double>> numbers(const std::string& key) const;
  std::optional<std::vector<bool>> flags(const std::string& key) const;
  std::optional<std::vector<std::string_view>> texts(const std::string& key) const;

  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  struct Value {
    GgufType type = GgufType::u8;  // of the elements, for an array
    bool is_array = false;
    std::uint64_t count = 1;
    std::span<const std::byte> bytes;
  };
  class Parser;

  const Value* find(const std::string& key, bool is_array) const;

  std::string where_;
  std::map<std::string, Value> values_;
  std::vector<Tensor> tensors_;
};

}  // namespace gauntlet::model::inline files
