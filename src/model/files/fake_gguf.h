// A GGUF file under construction for tests; every part of it can be made to lie.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "model/files/gguf.h"

namespace gauntlet::model::inline files {

struct FakeGguf {
  struct FakeTensor {
    std::string name;
    std::vector<std::uint64_t> dims;  // innermost first, as the file has them
    std::uint32_t type = 0;
    std::uint64_t offset = 0;
  };

  std::string magic = "GGUF";
  std::uint32_t version = 3;
  std::string values;
  std::uint64_t num_values = 0;
  std::vector<FakeTensor> tensors;
  std::string data;

  template <class T>
  static std::string raw(T value) {
    std::string bytes(sizeof(T), '\0');
    std::memcpy(bytes.data(), &value, sizeof(T));
    return bytes;
  }
  static std::string text(const std::string& value) {
    return raw<std::uint64_t>(value.size()) + value;
  }

  FakeGguf& put(const std::string& key, GgufType type, const std::string& bytes) {
    values += text(key) + raw(type) + bytes;
    ++num_values;
    return *this;
  }
  FakeGguf& put(const std::string& key, std::uint32_t value) {
    return put(key, GgufType::u32, raw(value));
  }
  FakeGguf& put(const std::string& key, float value) { return put(key, GgufType::f32, raw(value)); }
  FakeGguf& put(const std::string& key, const std::string& value) {
    return put(key, GgufType::text, text(value));
  }
  FakeGguf& put_array(const std::string& key, GgufType type, std::uint64_t count,
                      const std::string& bytes) {
    return put(key, GgufType::array, raw(type) + raw(count) + bytes);
  }

  /// Adds a tensor of this many bytes behind the others.
  FakeGguf& tensor(const std::string& name, const std::vector<std::uint64_t>& dims, GgmlType type,
                   std::size_t bytes) {
    tensors.push_back({name, dims, static_cast<std::uint32_t>(type), data.size()});
    for (std::size_t i = 0; i < bytes; ++i) data.push_back(static_cast<char>(i * 7));
    data.resize((data.size() + 31) / 32 * 32);
    return *this;
  }

  std::string bytes() const {
    std::string file = magic + raw(version) + raw<std::uint64_t>(tensors.size()) + raw(num_values);
    file += values;
    for (const FakeTensor& each : tensors) {
      file += text(each.name) + raw(static_cast<std::uint32_t>(each.dims.size()));
      for (const std::uint64_t size : each.dims) file += raw(size);
      file += raw(each.type) + raw(each.offset);
    }
    file.resize((file.size() + 31) / 32 * 32);
    return file + data;
  }
};

}  // namespace gauntlet::model::inline files
