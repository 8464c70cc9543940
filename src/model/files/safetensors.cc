#include "model/files/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "model/files/checked_math.h"
#include "model/files/json_reader.h"
#include "model/files/printable.h"

namespace gauntlet::model::inline files {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMaxHeaderBytes = 32u << 20;  // gpt-oss-120b needs a tenth of a MiB
constexpr std::size_t kMaxDimensions = 8;

struct Element {
  const char* name;
  TensorType type;
  std::uint64_t bytes;
};
constexpr Element kElements[] = {
    {"F32", TensorType::f32, 4},       {"F16", TensorType::f16, 2},
    {"BF16", TensorType::bf16, 2},     {"U8", TensorType::u8, 1},
    {"BOOL", TensorType::other, 1},    {"I8", TensorType::other, 1},
    {"F8_E5M2", TensorType::other, 1}, {"F8_E4M3", TensorType::other, 1},
    {"F8_E8M0", TensorType::u8, 1},    {"I16", TensorType::other, 2},
    {"U16", TensorType::other, 2},     {"I32", TensorType::other, 4},
    {"U32", TensorType::other, 4},     {"I64", TensorType::other, 8},
    {"U64", TensorType::other, 8},     {"F64", TensorType::other, 8},
};

std::optional<std::uint64_t> size_of(const json& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  const auto size = value.get<std::uint64_t>();
  return size <= static_cast<std::uint64_t>(INT64_MAX) ? std::optional(size) : std::nullopt;
}

/// One entry of the header; `data` is what follows the header.
class Entry {
 public:
  Entry(const ModelFile& file, const std::string& name, std::span<const std::byte> data)
      : file_(file), name_(name), data_(data) {}

  Expected<Tensor> read(const json& entry) const {
    if (!entry.is_object()) return refuse("is not described by an object");
    Tensor tensor{.name = name_, .where = file_.where};
    const auto type = entry.find("dtype");
    if (type == entry.end() || !type->is_string()) return refuse("has no dtype");
    tensor.type_name = type->get<std::string>();
    const auto element = std::find_if(std::begin(kElements), std::end(kElements),
                                      [&](const Element& e) { return tensor.type_name == e.name; });
    if (element == std::end(kElements)) {
      return refuse(fmt::format("has the unknown dtype '{}'", shown(tensor.type_name)));
    }
    tensor.type = element->type;

    const auto shape = entry.find("shape");
    if (shape == entry.end() || !shape->is_array() || shape->size() > kMaxDimensions) {
      return refuse("has no shape");
    }
    for (const json& dimension : *shape) {
      const auto size = size_of(dimension);
      if (!size) return refuse("has a shape that is not made of sizes");
      tensor.shape.push_back(static_cast<std::int64_t>(*size));
    }
    const auto count = checked_count(tensor.shape);
    const auto bytes =
        count ? checked_multiply(static_cast<std::uint64_t>(*count), element->bytes) : std::nullopt;
    if (!bytes) return refuse(fmt::format("is too large: {}", describe_shape(tensor.shape)));

    const auto offsets = entry.find("data_offsets");
    if (offsets == entry.end() || !offsets->is_array() || offsets->size() != 2) {
      return refuse("has no data_offsets");
    }
    const auto begin = size_of((*offsets)[0]);
    const auto end = size_of((*offsets)[1]);
    if (!begin || !end || *begin > *end) return refuse("has data_offsets that are no range");
    if (*end > data_.size()) {
      return refuse(fmt::format("ends at byte {} of {}: the file is cut off", *end, data_.size()));
    }
    if (*end - *begin != *bytes) {
      return refuse(fmt::format("has {} bytes, but {} {} takes {}", *end - *begin, tensor.type_name,
                                describe_shape(tensor.shape), *bytes));
    }
    tensor.data = data_.data() + *begin;
    tensor.bytes = *bytes;
    return tensor;
  }

 private:
  Error refuse(const std::string& what) const {
    return {.message = fmt::format("{}: tensor '{}' {}", file_.where, shown(name_), what)};
  }

  const ModelFile& file_;
  const std::string& name_;
  std::span<const std::byte> data_;
};

/// Names of shards come from a file: they must not lead out of the folder.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name.find('/') == std::string::npos;
}

Expected<TensorTable> read_shards(const ModelFiles& files, const ModelFile& index) {
  const auto parsed = parse_json_object(index.text(), index.where);
  if (!parsed) return parsed.error();
  const auto map = parsed->find("weight_map");
  if (map == parsed->end() || !map->is_object()) {
    return Error{.message = fmt::format("{}: 'weight_map' is missing", index.where)};
  }
  TensorTable table(files.where());
  std::set<std::string> read;
  for (const auto& [tensor, shard] : map->items()) {
    if (!shard.is_string() || !is_plain_name(shard.get_ref<const std::string&>())) {
      return Error{.message = fmt::format("{}: tensor '{}' is not mapped to a file of the folder",
                                          index.where, shown(tensor))};
    }
    const auto& name = shard.get_ref<const std::string&>();
    if (!read.insert(name).second) continue;
    const ModelFile* file = files.find(name);
    if (!file) {
      return Error{.message = fmt::format("{}: the file '{}', which holds tensor '{}', is missing",
                                          index.where, shown(name), shown(tensor))};
    }
    if (const auto added = add_safetensors(*file, table); !added) return added.error();
  }
  for (const auto& [tensor, shard] : map->items()) {
    const Tensor* found = table.find(tensor);
    if (!found || found->where != files.find(shard.get_ref<const std::string&>())->where) {
      return Error{.message =
                       fmt::format("{}: tensor '{}' is not in '{}'", index.where, shown(tensor),
                                   shown(shard.get_ref<const std::string&>()))};
    }
  }
  return table;
}

}  // namespace

Expected<void> add_safetensors(const ModelFile& file, TensorTable& table) {
  const auto refuse = [&](const std::string& what) {
    return Error{.message = fmt::format("{}: {}", file.where, what)};
  };
  std::uint64_t header_bytes = 0;
  if (file.bytes.size() < sizeof(header_bytes)) return refuse("the file is cut off");
  std::memcpy(&header_bytes, file.bytes.data(), sizeof(header_bytes));
  if (header_bytes > kMaxHeaderBytes) {
    return refuse(
        fmt::format("the header claims {} bytes: this is no safetensors file", header_bytes));
  }
  if (header_bytes > file.bytes.size() - sizeof(header_bytes)) {
    return refuse("the file is cut off inside its header");
  }
  const auto body = file.bytes.subspan(sizeof(header_bytes));
  const auto header = parse_json_object({reinterpret_cast<const char*>(body.data()), header_bytes},
                                        file.where + ": the header");
  if (!header) return header.error();

  const auto data = body.subspan(header_bytes);
  std::vector<Tensor> tensors;
  for (const auto& [name, entry] : header->items()) {
    if (name == "__metadata__") continue;
    auto tensor = Entry(file, name, data).read(entry);
    if (!tensor) return tensor.error();
    tensors.push_back(std::move(*tensor));
  }
  std::sort(tensors.begin(), tensors.end(), [](const Tensor& a, const Tensor& b) {
    return a.data != b.data ? a.data < b.data : a.bytes < b.bytes;
  });
  for (std::size_t i = 1; i < tensors.size(); ++i) {
    if (tensors[i - 1].data + tensors[i - 1].bytes > tensors[i].data) {
      return refuse(fmt::format("tensors '{}' and '{}' overlap", shown(tensors[i - 1].name),
                                shown(tensors[i].name)));
    }
  }
  for (Tensor& tensor : tensors) {
    if (const auto added = table.add(std::move(tensor)); !added) return added.error();
  }
  return {};
}

Expected<TensorTable> read_safetensors(const ModelFiles& files) {
  TensorTable table(files.where());
  if (const ModelFile* single = files.find("model.safetensors")) {
    if (const auto added = add_safetensors(*single, table); !added) return added.error();
    return table;
  }
  if (const ModelFile* index = files.find("model.safetensors.index.json")) {
    return read_shards(files, *index);
  }
  bool any = false;
  for (const ModelFile& file : files.all()) {
    if (!file.name.ends_with(".safetensors")) continue;
    any = true;
    if (const auto added = add_safetensors(file, table); !added) return added.error();
  }
  if (!any) return Error{.message = fmt::format("{} has no .safetensors file", files.where())};
  return table;
}

}  // namespace gauntlet::model::inline files
