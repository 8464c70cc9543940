// A flat TOML file: keys with strings, numbers, booleans and lists of them. Tables and dates are
// refused by name. toml++ reads it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/expected.h"

namespace gauntlet {

enum class TomlType { string, integer, number, boolean, list };

const char* name_of(TomlType type);

struct TomlItem {
  std::string key;
  TomlType type = TomlType::string;
  /// One value, or those of a list, as text: strings without quotes and escapes, numbers in
  /// decimal.
  std::vector<std::string> values;
  std::vector<TomlType> value_types;  // of each of them
  int line = 0;
};

/// The items in their order. An error names `where` and the line; a key given twice is one.
Expected<std::vector<TomlItem>> parse_toml(std::string_view text, const std::string& where);

/// A string in quotes, with escapes where it needs them.
std::string toml_quoted(std::string_view text);

}  // namespace gauntlet
