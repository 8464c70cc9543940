// Everything in a GGUF file that could lie is checked here, once.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "model/files/checked_math.h"
#include "model/files/gguf.h"
#include "model/files/printable.h"
#include "model/quantized.h"

namespace gauntlet::model::inline files {
namespace {

constexpr std::uint32_t kMaxGgufDimensions = 4;
constexpr std::uint64_t kMaxNameBytes = 65535;
constexpr std::uint64_t kMaxAlignment = 1u << 20;

struct Layout {
  std::uint32_t id;
  const char* name;
  TensorType type;
  std::uint64_t block_values;
  std::uint64_t block_bytes;
};
// Types that are only named cannot be weights here, but they may lie in the file.
constexpr Layout kTypes[] = {
    {0, "F32", TensorType::f32, 1, 4},
    {1, "F16", TensorType::f16, 1, 2},
    {2, "Q4_0", TensorType::other, 32, 18},
    {3, "Q4_1", TensorType::other, 32, 20},
    {6, "Q5_0", TensorType::other, 32, 22},
    {7, "Q5_1", TensorType::other, 32, 24},
    {8, "Q8_0", TensorType::q8_0, kQ8Block, kQ8BlockBytes},
    {10, "Q2_K", TensorType::other, 256, 84},
    {11, "Q3_K", TensorType::other, 256, 110},
    {12, "Q4_K", TensorType::other, 256, 144},
    {13, "Q5_K", TensorType::other, 256, 176},
    {14, "Q6_K", TensorType::other, 256, 210},
    {24, "I8", TensorType::other, 1, 1},
    {25, "I16", TensorType::other, 1, 2},
    {26, "I32", TensorType::other, 1, 4},
    {27, "I64", TensorType::other, 1, 8},
    {28, "F64", TensorType::other, 1, 8},
    {30, "BF16", TensorType::bf16, 1, 2},
    {39, "MXFP4", TensorType::mxfp4, kMxfp4Block, kMxfp4HalvesBytes},
};

/// Bytes of a value that has a fixed size; nullopt for texts, arrays and what is no type.
std::optional<std::uint64_t> fixed_size(GgufType type) {
  switch (type) {
    case GgufType::u8:
    case GgufType::i8:
    case GgufType::boolean:
      return 1;
    case GgufType::u16:
    case GgufType::i16:
      return 2;
    case GgufType::u32:
    case GgufType::i32:
    case GgufType::f32:
      return 4;
    case GgufType::u64:
    case GgufType::i64:
    case GgufType::f64:
      return 8;
    default:
      return std::nullopt;
  }
}

/// Takes bytes from the front. After the end is hit once, everything it gives is empty.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> take(std::uint64_t count) {
    if (count > bytes_.size() - at_) {
      at_ = bytes_.size();
      hit_end_ = true;
      return {};
    }
    at_ += count;
    return bytes_.subspan(at_ - count, count);
  }
  template <class T>
  T number() {
    T value{};
    if (const auto bytes = take(sizeof(T)); !bytes.empty()) {
      std::memcpy(&value, bytes.data(), sizeof(T));
    }
    return value;
  }
  std::span<const std::byte> text() { return take(number<std::uint64_t>()); }

  std::uint64_t at() const { return at_; }
  bool hit_end() const { return hit_end_; }
  std::span<const std::byte> since(std::uint64_t begin) const {
    return bytes_.subspan(begin, at_ - begin);
  }

 private:
  std::span<const std::byte> bytes_;
  std::uint64_t at_ = 0;
  bool hit_end_ = false;
};

std::string as_string(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

class GgufFile::Parser {
 public:
  explicit Parser(const ModelFile& file) : file_(file), cursor_(file.bytes) {}

  Expected<GgufFile> parse() {
    GgufFile gguf;
    gguf.where_ = file_.where;
    if (as_string(cursor_.take(4)) != "GGUF") return refuse("this is no GGUF file");
    const auto version = cursor_.number<std::uint32_t>();
    if (version != kGgufVersion && !cursor_.hit_end()) {
      return refuse(
          fmt::format("GGUF version {} is not supported, only {}", version, kGgufVersion));
    }
    const auto num_tensors = cursor_.number<std::uint64_t>();
    const auto num_values = cursor_.number<std::uint64_t>();
    for (std::uint64_t i = 0; i < num_values; ++i) {
      if (auto error = read_value(gguf)) return *error;
    }
    std::uint64_t alignment = kGgufAlignment;
    if (gguf.has("general.alignment")) {
      alignment = static_cast<std::uint64_t>(gguf.integer("general.alignment").value_or(0));
      if (!std::has_single_bit(alignment) || alignment > kMaxAlignment) {
        return refuse("'general.alignment' is not a power of two up to a MiB");
      }
    }
    std::vector<std::uint64_t> offsets;
    for (std::uint64_t i = 0; i < num_tensors; ++i) {
      if (auto error = read_tensor(gguf, offsets)) return *error;
    }
    if (cursor_.hit_end()) return cut_off();
    if (auto error = place(gguf, offsets, alignment)) return *error;
    return gguf;
  }

 private:
  Error refuse(const std::string& what) const {
    return {.message = fmt::format("{}: {}", file_.where, what)};
  }
  Error refuse(const Tensor& tensor, const std::string& what) const {
    return refuse(fmt::format("tensor '{}' {}", shown(tensor.name), what));
  }
  Error cut_off() const { return refuse("the file is cut off"); }

  std::optional<Error> read_value(GgufFile& gguf) {
    const std::string key = as_string(cursor_.text());
    Value value{.type = GgufType{cursor_.number<std::uint32_t>()}};
    if (cursor_.hit_end()) return cut_off();
    if (key.empty() || key.size() > kMaxNameBytes)
      return refuse("a key of the metadata is no name");
    if (value.type == GgufType::array) {
      value.is_array = true;
      value.type = GgufType{cursor_.number<std::uint32_t>()};
      value.count = cursor_.number<std::uint64_t>();
    }
    if (value.type == GgufType::text && !value.is_array) {
      value.bytes = cursor_.text();
    } else if (value.type == GgufType::text) {
      const std::uint64_t begin = cursor_.at();
      for (std::uint64_t i = 0; i < value.count && !cursor_.hit_end(); ++i) cursor_.text();
      value.bytes = cursor_.since(begin);
    } else if (const auto size = fixed_size(value.type)) {
      const auto bytes = checked_multiply(value.count, *size);
      if (!bytes) return refuse(fmt::format("'{}' has too many elements", shown(key)));
      value.bytes = cursor_.take(*bytes);
    } else {
      return refuse(fmt::format("'{}' has the unknown type {}", shown(key),
                                static_cast<std::uint32_t>(value.type)));
    }
    if (cursor_.hit_end()) return cut_off();
    if (!gguf.values_.emplace(key, value).second) {
      return refuse(fmt::format("the key '{}' is there twice", shown(key)));
    }
    return std::nullopt;
  }

  std::optional<Error> read_tensor(GgufFile& gguf, std::vector<std::uint64_t>& offsets) {
    Tensor tensor{.name = as_string(cursor_.text()), .where = file_.where};
    const auto dimensions = cursor_.number<std::uint32_t>();
    if (cursor_.hit_end()) return cut_off();
    if (tensor.name.empty() || tensor.name.size() > kMaxNameBytes) {
      return refuse("a tensor has no name");
    }
    if (dimensions < 1 || dimensions > kMaxGgufDimensions) {
      return refuse(tensor, fmt::format("has {} dimensions", dimensions));
    }
    for (std::uint32_t i = 0; i < dimensions; ++i) {
      const auto size = cursor_.number<std::uint64_t>();
      if (size > static_cast<std::uint64_t>(INT64_MAX)) return refuse(tensor, "is too large");
      tensor.shape.insert(tensor.shape.begin(), static_cast<std::int64_t>(size));
    }
    const auto id = cursor_.number<std::uint32_t>();
    offsets.push_back(cursor_.number<std::uint64_t>());
    if (cursor_.hit_end()) return cut_off();

    const auto type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                   [&](const Layout& each) { return each.id == id; });
    if (type == std::end(kTypes)) {
      return refuse(tensor, fmt::format("has the unknown type {}", id));
    }
    tensor.type = type->type;
    tensor.type_name = type->name;
    const auto count = checked_count(tensor.shape);
    if (!count)
      return refuse(tensor, fmt::format("is too large: {}", describe_shape(tensor.shape)));
    if (static_cast<std::uint64_t>(tensor.shape.back()) % type->block_values != 0) {
      return refuse(tensor, fmt::format("has rows of {}, not a multiple of the {} values of a {} "
                                        "block",
                                        tensor.shape.back(), type->block_values, type->name));
    }
    const auto bytes = checked_multiply(static_cast<std::uint64_t>(*count) / type->block_values,
                                        type->block_bytes);
    if (!bytes)
      return refuse(tensor, fmt::format("is too large: {}", describe_shape(tensor.shape)));
    tensor.bytes = *bytes;
    gguf.tensors_.push_back(std::move(tensor));
    return std::nullopt;
  }

  /// Gives each tensor its data, which begins at the next aligned byte after the list of tensors.
  std::optional<Error> place(GgufFile& gguf, const std::vector<std::uint64_t>& offsets,
                             std::uint64_t alignment) const {
    const std::uint64_t start = (cursor_.at() + alignment - 1) / alignment * alignment;
    const std::uint64_t available = file_.bytes.size() > start ? file_.bytes.size() - start : 0;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      Tensor& tensor = gguf.tensors_[i];
      const auto end = checked_add(offsets[i], tensor.bytes);
      if (offsets[i] % alignment != 0) {
        return refuse(
            tensor, fmt::format("begins at {}, which is not aligned to {}", offsets[i], alignment));
      }
      if (!end || *end > available) {
        return refuse(tensor, fmt::format("lies outside the {} bytes of data: the file is cut off",
                                          available));
      }
      tensor.data = tensor.bytes == 0 ? nullptr : file_.bytes.data() + start + offsets[i];
      if (tensor.bytes > 0) order.push_back(i);
    }
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return offsets[a] < offsets[b]; });
    for (std::size_t i = 1; i < order.size(); ++i) {
      const Tensor& before = gguf.tensors_[order[i - 1]];
      if (offsets[order[i - 1]] + before.bytes > offsets[order[i]]) {
        return refuse(fmt::format("tensors '{}' and '{}' overlap", shown(before.name),
                                  shown(gguf.tensors_[order[i]].name)));
      }
    }
    return std::nullopt;
  }

  const ModelFile& file_;
  Cursor cursor_;
};

Expected<GgufFile> GgufFile::parse(const ModelFile& file) { return Parser(file).parse(); }

}  // namespace gauntlet::model::inline files
