#include "core/text/json_fields.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "core/check.h"

namespace gauntlet {
namespace {

template <class T>
T value_at(const nlohmann::json& json, const char* key, T missing) {
  const auto field = json.find(key);
  return field == json.end() || field->is_null() ? missing : field->get<T>();
}

}  // namespace

std::string string_at(const nlohmann::json& json, const char* key) {
  return value_at<std::string>(json, key, {});
}

std::vector<std::string> strings_at(const nlohmann::json& json, const char* key) {
  return value_at<std::vector<std::string>>(json, key, {});
}

std::int64_t integer_at(const nlohmann::json& json, const char* key, std::int64_t missing) {
  return value_at(json, key, missing);
}

int small_at(const nlohmann::json& json, const char* key, int missing) {
  return value_at(json, key, missing);
}

bool flag_at(const nlohmann::json& json, const char* key) { return value_at(json, key, false); }

double number_at(const nlohmann::json& json, const char* key, double missing) {
  const auto field = json.find(key);
  if (field == json.end()) return missing;
  return field->is_null() ? std::numeric_limits<double>::quiet_NaN() : field->get<double>();
}

const nlohmann::json& object_at(const nlohmann::json& json, const char* key) {
  static const nlohmann::json kEmpty = nlohmann::json::object();
  const auto field = json.find(key);
  if (field == json.end() || field->is_null()) return kEmpty;
  check(field->is_object(), std::string(key) + " is not an object");
  return *field;
}

}  // namespace gauntlet
