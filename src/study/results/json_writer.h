// Writes what `fields` names (json_form.h).
#pragma once
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "stats/interval_json.h"
#include "study/results/json_form.h"

namespace gauntlet::study::inline results {

class JsonWriter {
 public:
  static constexpr bool kReads = false;
  template <class T>
  using Of = const T;

  template <class T>
  static nlohmann::json write(const T& value);

  template <class T>
  void operator()(const char* key, const T& value) {
    object_[key] = write(value);
  }
  /// What earlier files lack.
  template <class T>
  void later(const char* key, const T& value) {
    (*this)(key, value);
  }
  /// Of an optional, a text or a flag: no key where there is nothing to say.
  template <class T>
  void absent_when_empty(const char* key, const T& value) {
    if constexpr (io_detail::kIsOptional<T>) {
      if (value) (*this)(key, *value);
    } else {
      if (value != T()) (*this)(key, value);
    }
  }
  void null_when_empty(const char* key, const std::string& text) {
    object_[key] = text.empty() ? nlohmann::json() : nlohmann::json(text);
  }
  /// The fields of a part among those of the whole; or its gap.
  template <class T>
  void beside(const T& part) {
    fields(*this, part);
  }
  template <class T>
  void beside(const Measured<T>& part) {
    if (part) {
      fields(*this, *part);
    } else {
      absent_when_empty(kGap, part.gap);
    }
  }
  /// Likewise, there where `key`, one of its fields, is.
  template <class T>
  void beside_where(const char*, const std::optional<T>& part) {
    if (part) fields(*this, *part);
  }
  /// What a reader must find true.
  void demand(bool, const char*, const char*) {}

 private:
  nlohmann::json object_ = nlohmann::json::object();
};

template <class T>
nlohmann::json JsonWriter::write(const T& value) {
  using nlohmann::json;
  if constexpr (HasForm<T>) {
    return write(JsonForm<T>::to(value));
  } else if constexpr (IsForeign<T>) {
    return ForeignJson<T>::to(value);
  } else if constexpr (std::is_same_v<T, stats::Interval>) {
    return stats::to_json(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::isfinite(value) ? json(value) : json();
  } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
    return json(value);
  } else if constexpr (std::is_enum_v<T>) {
    return json(json_name(value));
  } else if constexpr (io_detail::kIsOptional<T>) {
    return value ? write(*value) : json();
  } else if constexpr (io_detail::kIsMeasured<T>) {
    if (value) return write(*value);
    return value.gap.empty() ? json() : json{{kGap, value.gap}};
  } else if constexpr (io_detail::kIsList<T>) {
    json list = json::array();
    for (const auto& item : value) list.push_back(write(item));
    return list;
  } else if constexpr (io_detail::kIsMap<T>) {
    json object = json::object();
    for (const auto& [key, item] : value) object[key] = write(item);
    return object;
  } else {
    JsonWriter writer;
    fields(writer, value);
    return std::move(writer.object_);
  }
}

}  // namespace gauntlet::study::inline results
