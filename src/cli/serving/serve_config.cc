#include "cli/serving/serve_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/os/files.h"
#include "core/text/text.h"
#include "core/text/toml.h"

namespace gauntlet::cli {
namespace {

constexpr const char* kSecret = "api-key";
constexpr const char* kNoValues = "[]";  // as CLI11 writes a list that is empty

/// --help and the options that say where the others come from are not configuration.
bool is_configurable(const CLI::Option& option) {
  return option.get_configurable() && !option.get_lnames().empty();
}

bool is_flag(const CLI::Option& option) { return option.get_expected_max() == 0; }

/// CLI11 names an option's type behind its checks: "INT:INT in [1 - 64]".
TomlType type_of(const CLI::Option& option) {
  const std::string name = option.get_type_name();
  if (is_flag(option)) return TomlType::boolean;
  if (name.starts_with("INT") || name.starts_with("UINT")) return TomlType::integer;
  if (name.starts_with("FLOAT")) return TomlType::number;
  return TomlType::string;
}

bool takes(const CLI::Option& option, TomlType given) {
  const TomlType wanted = type_of(option);
  return given == wanted || (wanted == TomlType::number && given == TomlType::integer);
}

Expected<void> apply(CLI::Option& option, const TomlItem& item) {
  const auto refuse = [&](const std::string& why) {
    return wrong_use(fmt::format("line {}: {} {}", item.line, item.key, why));
  };
  const bool list = item.type == TomlType::list;
  if (list && option.get_items_expected_max() <= 1) {
    return refuse(fmt::format("takes {}, not a list", name_of(type_of(option))));
  }
  for (const TomlType type : item.value_types) {
    if (!takes(option, type)) {
      return refuse(fmt::format("takes {}, not {}", name_of(type_of(option)), name_of(type)));
    }
  }
  if (item.values.empty() || option.count() > 0) return {};
  try {
    option.add_result(item.values);
    option.run_callback();
  } catch (const CLI::ParseError& error) {
    // CLI11 begins with the option's name, which the sentence has already.
    std::string why = error.what();
    const std::string name = option.get_name() + ": ";
    if (why.starts_with(name)) why.erase(0, name.size());
    return refuse("cannot be what it says: " + why);
  }
  return {};
}

std::string unknown_key(const CLI::App& command, const TomlItem& item) {
  std::vector<std::string> valid;
  for (const CLI::Option* option : command.get_options()) {
    if (is_configurable(*option)) valid.push_back(option->get_lnames().front());
  }
  const std::string near = nearest(item.key, valid);
  return fmt::format("line {}: there is no option '{}'{}", item.line, item.key,
                     near.empty() ? "" : ", did you mean '" + near + "'?");
}

std::string shown(const CLI::Option& option, const std::string& value) {
  return type_of(option) == TomlType::string ? toml_quoted(value) : value;
}

/// What stands behind `key =`; empty where nothing is set.
std::string value_text(const CLI::Option& option) {
  std::vector<std::string> values =
      option.count() > 0 ? option.reduced_results() : std::vector<std::string>{};
  if (values.empty() && is_flag(option)) return "false";
  const std::string by_default = option.get_default_str();
  if (values.empty() && (by_default.empty() || by_default == kNoValues)) return "";
  if (values.empty()) values = {by_default};
  if (option.get_items_expected_max() <= 1) return shown(option, values.back());
  std::string text;
  for (const std::string& value : values) {
    text += (text.empty() ? "" : ", ") + shown(option, value);
  }
  return "[" + text + "]";
}

}  // namespace

void add_config_options(CLI::App& command, std::string& file, bool& print) {
  command.add_option("--config", file, "TOML file of options by their long names")
      ->envname("GAUNTLET_CONFIG")
      ->configurable(false)
      ->option_text("FILE");
  command.add_flag("--print-config", print, "show what holds as such a file, and end")
      ->configurable(false);
}

Expected<void> apply_config(CLI::App& command, const std::string& file) {
  const auto text = read_file(file);
  if (!text) return text.error();
  const auto items = parse_toml(*text, file);
  if (!items) return items.error();
  std::set<const CLI::Option*> seen;
  for (const TomlItem& item : *items) {
    CLI::Option* option = command.get_option_no_throw("--" + item.key);
    if (!option || !is_configurable(*option)) {
      return wrong_use(fmt::format("{}: {}", file, unknown_key(command, item)));
    }
    if (!seen.insert(option).second) {
      return wrong_use(
          fmt::format("{}: line {}: '{}' is given twice, the other time by its other name", file,
                      item.line, item.key));
    }
    const auto applied = apply(*option, item);
    if (!applied) return wrong_use(fmt::format("{}: {}", file, applied.error().message));
  }
  return {};
}

std::string config_text(const CLI::App& command) {
  std::string text = "# gauntlet " + command.get_name() +
                     " --config FILE. A flag beats the environment, which beats this file.\n";
  for (const CLI::Option* option : command.get_options()) {
    if (!is_configurable(*option)) continue;
    const std::string& key = option->get_lnames().front();
    const std::string value = value_text(*option);
    text += "\n# " + option->get_description() + "\n";
    if (key == kSecret && option->count() > 0) {
      text += "# api-key is set, and not shown\n";
    } else if (value.empty() || value == "\"\"") {
      text += "# " + key + " =\n";
    } else {
      text += key + " = " + value + "\n";
    }
  }
  return text;
}

}  // namespace gauntlet::cli
