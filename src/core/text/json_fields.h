// Reading fields of a JSON file of ours: one that is missing or null takes its default, one of the
// wrong type throws.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace gauntlet {

std::string string_at(const nlohmann::json& json, const char* key);
std::vector<std::string> strings_at(const nlohmann::json& json, const char* key);
std::int64_t integer_at(const nlohmann::json& json, const char* key, std::int64_t missing = 0);
int small_at(const nlohmann::json& json, const char* key, int missing = 0);
bool flag_at(const nlohmann::json& json, const char* key);
/// JSON has no NaN: a number that is not finite is written as null, and null is read back as NaN.
double number_at(const nlohmann::json& json, const char* key, double missing = 0);

/// An object to look into or to iterate over, empty where it is missing or null.
const nlohmann::json& object_at(const nlohmann::json& json, const char* key);

}  // namespace gauntlet
