// Reads what `fields` names (json_form.h), and says where a document is not like that.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "core/expected.h"
#include "stats/interval_json.h"
#include "study/results/json_form.h"

namespace gauntlet::study::inline results {

/// Goes on after the first fault without reading any more, so that `fields` need not ask.
class JsonReader {
 public:
  static constexpr bool kReads = true;
  template <class T>
  using Of = T;

  /// An error says what is wrong where: "layers[2].gain.ratio.value is no number".
  template <class T>
  static Expected<T> read(const nlohmann::json& document) {
    JsonReader reader;
    T value{};
    reader.take(document, value);
    if (!reader.fault_.empty()) return Error{reader.fault_, ErrorKind::wrong_use};
    return value;
  }

  template <class T>
  void operator()(const char* key, T& value) {
    const Step step(path_, key);
    if (const nlohmann::json* node = find(key)) {
      take(*node, value);
    } else {
      fail("is missing");
    }
  }
  template <class T>
  void later(const char* key, T& value) {
    if (find(key) != nullptr) (*this)(key, value);
  }
  template <class T>
  void absent_when_empty(const char* key, T& value) {
    if (find(key) == nullptr) return;
    if constexpr (io_detail::kIsOptional<T>) {
      (*this)(key, value.emplace());
    } else {
      (*this)(key, value);
    }
  }
  void null_when_empty(const char* key, std::string& text) {
    const nlohmann::json* node = find(key);
    if (node == nullptr || !node->is_null()) (*this)(key, text);
  }
  template <class T>
  void beside(T& part) {
    fields(*this, part);
  }
  template <class T>
  void beside(Measured<T>& part) {
    if (const nlohmann::json* gap = find(kGap)) {
      take_gap(*gap, part.gap);
    } else {
      fields(*this, part.value.emplace());
    }
  }
  template <class T>
  void beside_where(const char* key, std::optional<T>& part) {
    if (find(key) != nullptr) fields(*this, part.emplace());
  }
  void demand(bool holds, const char* key, const char* otherwise) {
    const Step step(path_, key);
    if (!holds) fail(otherwise);
  }

 private:
  /// The path while one value below it is read.
  class Step {
   public:
    Step(std::string& path, const std::string& key) : path_(path), length_(path.size()) {
      path += path.empty() || key.starts_with('[') ? key : "." + key;
    }
    ~Step() { path_.resize(length_); }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    std::string& path_;
    std::size_t length_;
  };

  void fail(const std::string& how) {
    if (fault_.empty()) fault_ = (path_.empty() ? "the document" : path_) + " " + how;
  }
  /// Null where this object lacks it.
  const nlohmann::json* find(const char* key) const {
    if (object_ == nullptr) return nullptr;
    const auto found = object_->find(key);
    return found == object_->end() ? nullptr : &*found;
  }

  template <class T>
  void take(const nlohmann::json& node, T& value);
  /// A gap says why.
  void take_gap(const nlohmann::json& node, std::string& gap) {
    const Step step(path_, kGap);
    take(node, gap);
    if (gap.empty()) fail("is empty");
  }
  template <class T>
  void take_integer(const nlohmann::json& node, T& value);
  template <class T>
  void take_enum(const nlohmann::json& node, T& value);
  template <class T>
  void take_list(const nlohmann::json& node, T& value);
  template <class T>
  void take_object(const nlohmann::json& node, T& value);
  void take_interval(const nlohmann::json& node, stats::Interval& value);

  const nlohmann::json* object_ = nullptr;
  std::string path_;
  std::string fault_;
};

template <class T>
void JsonReader::take(const nlohmann::json& node, T& value) {
  if (!fault_.empty()) return;
  if constexpr (HasForm<T>) {
    auto form = JsonForm<T>::to(value);
    take(node, form);
    if (fault_.empty()) value = JsonForm<T>::from(form);
  } else if constexpr (IsForeign<T>) {
    auto read = ForeignJson<T>::from(node);
    if (!read) return fail(read.error().message);
    value = std::move(*read);
  } else if constexpr (std::is_same_v<T, stats::Interval>) {
    take_interval(node, value);
  } else if constexpr (std::is_floating_point_v<T>) {
    // JSON has no NaN: it is written as null.
    if (!node.is_number() && !node.is_null()) return fail("is no number");
    value = node.is_null() ? std::numeric_limits<T>::quiet_NaN() : node.get<T>();
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!node.is_boolean()) return fail("is neither true nor false");
    value = node.get<bool>();
  } else if constexpr (std::is_integral_v<T>) {
    take_integer(node, value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!node.is_string()) return fail("is no text");
    value = node.get<std::string>();
  } else if constexpr (std::is_enum_v<T>) {
    take_enum(node, value);
  } else if constexpr (io_detail::kIsOptional<T>) {
    if (node.is_null()) return value.reset();
    take(node, value.emplace());
  } else if constexpr (io_detail::kIsMeasured<T>) {
    if (node.is_null()) return;
    if (node.is_object() && node.contains(kGap)) return take_gap(*node.find(kGap), value.gap);
    take(node, value.value.emplace());
  } else if constexpr (io_detail::kIsList<T>) {
    take_list(node, value);
  } else {
    take_object(node, value);
  }
}

template <class T>
void JsonReader::take_integer(const nlohmann::json& node, T& value) {
  if (!node.is_number_integer()) return fail("is no whole number");
  const bool fits = node.is_number_unsigned() ? std::in_range<T>(node.get<std::uint64_t>())
                                              : std::in_range<T>(node.get<std::int64_t>());
  if (!fits) return fail("is out of range");
  value = node.get<T>();
}

template <class T>
void JsonReader::take_enum(const nlohmann::json& node, T& value) {
  static_assert(!kAllOf<T>.empty(), "kAllOf lists the values of an enum that is read");
  std::string names;
  for (const T candidate : kAllOf<T>) {
    const std::string name = json_name(candidate);
    if (node == name) {
      value = candidate;
      return;
    }
    names += (names.empty() ? "" : ", ") + name;
  }
  fail("is none of " + names);
}

template <class T>
void JsonReader::take_list(const nlohmann::json& node, T& value) {
  if (!node.is_array()) return fail("is no list");
  if constexpr (io_detail::kIsArray<T>) {
    if (node.size() != value.size()) {
      return fail(fmt::format("has {} items instead of {}", node.size(), value.size()));
    }
  } else {
    value.clear();
  }
  for (std::size_t i = 0; i < node.size() && fault_.empty(); ++i) {
    const Step step(path_, fmt::format("[{}]", i));
    if constexpr (io_detail::kIsArray<T>) {
      take(node[i], value[i]);
    } else {
      typename T::value_type item{};
      take(node[i], item);
      value.insert(value.end(), std::move(item));
    }
  }
}

template <class T>
void JsonReader::take_object(const nlohmann::json& node, T& value) {
  if (!node.is_object()) return fail("is no object");
  if constexpr (io_detail::kIsMap<T>) {
    for (const auto& [key, item] : node.items()) {
      const Step step(path_, key);
      take(item, value[key]);
    }
  } else {
    const nlohmann::json* const around = std::exchange(object_, &node);
    fields(*this, value);
    object_ = around;
  }
}

inline void JsonReader::take_interval(const nlohmann::json& node, stats::Interval& value) {
  if (!node.is_object()) return fail("is no object");
  const bool is_of_version_1 = !node.contains("value") && node.contains("median");
  const char* const middle = is_of_version_1 ? "median" : "value";
  for (const char* key : {middle, "lo", "hi"}) {
    const Step step(path_, key);
    const auto number = node.find(key);
    if (number == node.end()) return fail("is missing");
    if (!number->is_number() && !number->is_null()) return fail("is no number");
  }
  value = stats::interval_from_json(node);
}

}  // namespace gauntlet::study::inline results
