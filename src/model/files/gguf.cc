#include "model/files/gguf.h"

#include <charconv>
#include <cstring>

namespace gauntlet::model::inline files {
namespace {

template <class T>
T load(std::span<const std::byte> bytes, std::uint64_t index = 0) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

double shortest_decimal(float value) {
  char text[32];
  const auto written = std::to_chars(text, text + sizeof(text), value);
  double wide = value;
  std::from_chars(text, written.ptr, wide);
  return wide;
}

std::optional<std::int64_t> integer_at(GgufType type, std::span<const std::byte> bytes,
                                       std::uint64_t index) {
  switch (type) {
    case GgufType::u8:
      return load<std::uint8_t>(bytes, index);
    case GgufType::i8:
      return load<std::int8_t>(bytes, index);
    case GgufType::u16:
      return load<std::uint16_t>(bytes, index);
    case GgufType::i16:
      return load<std::int16_t>(bytes, index);
    case GgufType::u32:
      return load<std::uint32_t>(bytes, index);
    case GgufType::i32:
      return load<std::int32_t>(bytes, index);
    case GgufType::i64:
      return load<std::int64_t>(bytes, index);
    case GgufType::u64: {
      const auto value = load<std::uint64_t>(bytes, index);
      if (value > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
      return static_cast<std::int64_t>(value);
    }
    default:
      return std::nullopt;
  }
}

std::optional<double> number_at(GgufType type, std::span<const std::byte> bytes,
                                std::uint64_t index) {
  if (type == GgufType::f32) return shortest_decimal(load<float>(bytes, index));
  if (type == GgufType::f64) return load<double>(bytes, index);
  const auto integer = integer_at(type, bytes, index);
  if (!integer) return std::nullopt;
  return static_cast<double>(*integer);
}

std::optional<bool> flag_at(GgufType type, std::span<const std::byte> bytes, std::uint64_t index) {
  if (type != GgufType::boolean) return std::nullopt;
  return load<std::uint8_t>(bytes, index) != 0;
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// All elements by `at`; nullopt when one is not what was asked for.
template <class T, class Value, class At>
std::optional<std::vector<T>> elements(const Value* value, At at) {
  if (!value) return std::nullopt;
  std::vector<T> all;
  all.reserve(value->count);
  for (std::uint64_t i = 0; i < value->count; ++i) {
    const auto element = at(value->type, value->bytes, i);
    if (!element) return std::nullopt;
    all.push_back(*element);
  }
  return all;
}

}  // namespace

std::vector<std::string> GgufFile::keys() const {
  std::vector<std::string> all;
  for (const auto& [key, value] : values_) all.push_back(key);
  return all;
}

const GgufFile::Value* GgufFile::find(const std::string& key, bool is_array) const {
  const auto found = values_.find(key);
  return found == values_.end() || found->second.is_array != is_array ? nullptr : &found->second;
}

std::optional<std::int64_t> GgufFile::integer(const std::string& key) const {
  const Value* value = find(key, false);
  return value ? integer_at(value->type, value->bytes, 0) : std::nullopt;
}

std::optional<double> GgufFile::number(const std::string& key) const {
  const Value* value = find(key, false);
  return value ? number_at(value->type, value->bytes, 0) : std::nullopt;
}

std::optional<bool> GgufFile::flag(const std::string& key) const {
  const Value* value = find(key, false);
  return value ? flag_at(value->type, value->bytes, 0) : std::nullopt;
}

std::optional<std::string_view> GgufFile::text(const std::string& key) const {
  const Value* value = find(key, false);
  if (!value || value->type != GgufType::text) return std::nullopt;
  return as_text(value->bytes);
}

std::optional<std::vector<std::int64_t>> GgufFile::integers(const std::string& key) const {
  return elements<std::int64_t>(find(key, true), integer_at);
}

std::optional<std::vector<double>> GgufFile::numbers(const std::string& key) const {
  return elements<double>(find(key, true), number_at);
}

std::optional<std::vector<bool>> GgufFile::flags(const std::string& key) const {
  return elements<bool>(find(key, true), flag_at);
}

std::optional<std::vector<std::string_view>> GgufFile::texts(const std::string& key) const {
  const Value* value = find(key, true);
  if (!value || value->type != GgufType::text) return std::nullopt;
  std::vector<std::string_view> all;
  all.reserve(value->count);
  auto rest = value->bytes;  // each a length and its bytes, checked when the file was parsed
  for (std::uint64_t i = 0; i < value->count; ++i) {
    const auto size = load<std::uint64_t>(rest);
    all.push_back(as_text(rest.subspan(sizeof(size), size)));
    rest = rest.subspan(sizeof(size) + size);
  }
  return all;
}

}  // namespace gauntlet::model::inline files
