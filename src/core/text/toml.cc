#include "core/text/toml.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

// Debian's toml++ (3.3.0) asserts, or assumes, of a table's name what a file need not keep ("[=").
// Without that it refuses the file by its ordinary way.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(condition) static_cast<void>(0)
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

namespace gauntlet {
namespace {

struct TomlFault {
  std::string why;
  toml::source_index line = 0;
};

/// What a value is here; tables and dates are nothing.
std::optional<TomlType> type_of(const toml::node& value) {
  switch (value.type()) {
    case toml::node_type::string:
      return TomlType::string;
    case toml::node_type::integer:
      return TomlType::integer;
    case toml::node_type::floating_point:
      return TomlType::number;
    case toml::node_type::boolean:
      return TomlType::boolean;
    case toml::node_type::array:
      return TomlType::list;
    default:
      return std::nullopt;
  }
}

std::string text_of(const toml::node& value) {
  if (const auto* text = value.as_string()) return text->get();
  if (const auto* number = value.as_integer()) return fmt::format("{}", number->get());
  if (const auto* number = value.as_floating_point()) return fmt::format("{}", number->get());
  return value.value_or(false) ? "true" : "false";
}

void add_value(TomlItem& item, const toml::node& value) {
  const auto type = type_of(value);
  if (!type || *type == TomlType::list) {
    throw TomlFault{fmt::format("the list of '{}' holds something else than strings, numbers, true "
                                "and false",
                                item.key),
                    value.source().begin.line};
  }
  item.values.push_back(text_of(value));
  item.value_types.push_back(*type);
}

/// toml++'s words without the first of them, and what it most often means.
std::string why_of(const toml::parse_error& error) {
  std::string why(error.description());
  if (constexpr std::string_view kFirst = "Error "; why.starts_with(kFirst))
    why.erase(0, kFirst.size());
  if (why.ends_with("could not determine value type")) why += "; a text stands in quotes";
  return why;
}

TomlItem item_of(std::string_view key, const toml::node& value) {
  const toml::source_index line = value.source().begin.line;
  const auto type = type_of(value);
  if (value.is_table() || value.is_array_of_tables()) {
    throw TomlFault{
        fmt::format("'{}' is a table, which has no meaning here; write 'key = value'", key), line};
  }
  if (!type) throw TomlFault{fmt::format("the value of '{}' is a date or a time", key), line};
  TomlItem item;
  item.key = key;
  item.type = *type;
  item.line = static_cast<int>(line);
  if (*type == TomlType::list) {
    for (const toml::node& one : *value.as_array()) add_value(item, one);
  } else {
    add_value(item, value);
  }
  return item;
}

}  // namespace

const char* name_of(TomlType type) {
  switch (type) {
    case TomlType::string:
      return "a string";
    case TomlType::integer:
      return "a whole number";
    case TomlType::number:
      return "a number";
    case TomlType::boolean:
      return "true or false";
    case TomlType::list:
      return "a list";
  }
  return "";
}

Expected<std::vector<TomlItem>> parse_toml(std::string_view text, const std::string& where) {
  const auto fault = [&](toml::source_index line, std::string_view why) {
    return Error{fmt::format("{}:{}: {}", where, line, why), ErrorKind::wrong_use};
  };
  try {
    std::vector<TomlItem> items;
    for (const auto& [key, value] : toml::parse(text)) items.push_back(item_of(key, value));
    std::ranges::sort(items, {}, &TomlItem::line);
    return items;
  } catch (const TomlFault& error) {
    return fault(error.line, error.why);
  } catch (const toml::parse_error& error) {
    return fault(error.source().begin.line, why_of(error));
  }
}

std::string toml_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace gauntlet
