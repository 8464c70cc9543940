#include "cli/command_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/build_info.h"

namespace gauntlet::cli {
namespace {

/// "on|off" are words to type; "DIR|FILE" and "N" stand for something.
bool is_word_to_type(const std::string& text) {
  return !text.empty() && std::ranges::none_of(text, [](unsigned char c) {
    return std::isupper(c) || c == '.' || c == ',' || c == ' ' || c == '<';
  });
}

std::string page_name(const CLI::App& app, const CLI::App& command) {
  return &app == &command ? app.get_name() : app.get_name() + "-" + command.get_name();
}

/// Text as groff takes it for text: no line begins a request, every dash is the one to type.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool line_start = out.empty() || out.back() == '\n';
    if (line_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string option_entry(const CLI::Option& option) {
  const ValueHint value = value_of(option);
  std::string names;
  for (const std::string& name : option.get_snames()) {
    names += (names.empty() ? "" : ", ") + ("\\fB\\-" + roff(name) + "\\fR");
  }
  for (const std::string& name : option.get_lnames()) {
    names += (names.empty() ? "" : ", ") + ("\\fB\\-\\-" + roff(name) + "\\fR");
  }
  if (names.empty()) names = "\\fI" + roff(option.get_name()) + "\\fR";
  if (value.kind != ValueHint::Kind::none && !option.get_positional()) {
    names += " \\fI" + roff(value.name) + "\\fR";
  }
  std::string text = option.get_description();
  if (!option.get_default_str().empty() && text.find("default") == std::string::npos) {
    text += fmt::format(" (default: {})", option.get_default_str());
  }
  if (!option.get_envname().empty()) text += fmt::format(" [{}]", option.get_envname());
  return ".TP\n" + names + "\n" + roff(text) + "\n";
}

std::string options_section(const CLI::App& command) {
  std::string text;
  for (const CLI::Option* option : options_of(command)) text += option_entry(*option);
  return text.empty() ? "" : ".SH OPTIONS\n" + text;
}

std::string commands_section(const CLI::App& app, const CLI::App& command) {
  std::string text;
  for (const CLI::App* sub : commands_of(command)) {
    text += fmt::format(".TP\n\\fB{}\\fR\n{}", roff(sub->get_name()), roff(sub->get_description()));
    text += &app == &command ? fmt::format(".\nSee \\fB{}\\fR(1).\n", roff(page_name(app, *sub)))
                             : "\n";
    if (&app == &command) continue;
    text += ".RS\n";
    for (const CLI::Option* option : options_of(*sub)) text += option_entry(*option);
    text += ".RE\n";
  }
  return text.empty() ? "" : ".SH COMMANDS\n" + text;
}

}  // namespace

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); });
}

std::vector<const CLI::Option*> options_of(const CLI::App& command) {
  return command.get_options(
      [](const CLI::Option* option) { return !option->get_group().empty(); });
}

ValueHint value_of(const CLI::Option& option) {
  using Kind = ValueHint::Kind;
  if (option.get_items_expected_max() == 0) return {};
  ValueHint hint{.kind = Kind::other, .name = option.get_option_text()};
  if (hint.name.empty()) hint.name = "VALUE";
  std::vector<std::string> parts;
  for (std::size_t from = 0; from <= hint.name.size();) {
    const std::size_t end = std::min(hint.name.find('|', from), hint.name.size());
    parts.push_back(hint.name.substr(from, end - from));
    from = end + 1;
  }
  if (parts.size() > 1 && std::ranges::all_of(parts, is_word_to_type)) {
    hint.kind = Kind::words;
    hint.words = parts;
  } else if (std::ranges::any_of(parts, [](const std::string& part) {
               return part == "FILE" || part == "DIR" || part == "PATH" || part == "FOLDER";
             })) {
    hint.kind = Kind::file;
  }
  return hint;
}

std::string manual_page(const CLI::App& app, const CLI::App& command) {
  const std::string name = page_name(app, command);
  std::string upper = name;
  std::ranges::transform(upper, upper.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  const std::string typed = &app == &command
                                ? app.get_name() + "\\fR \\fIcommand\\fR [options]"
                                : app.get_name() + " " + command.get_name() + "\\fR [options]";
  std::string text = fmt::format(".TH {} 1 \"\" \"gauntlet {}\" \"Gauntlet\"\n", roff(upper),
                                 build_info().version);
  text += fmt::format(".SH NAME\n{} \\- {}\n", roff(name), roff(command.get_description()));
  text += ".SH SYNOPSIS\n\\fB" + typed;
  for (const CLI::Option* option : options_of(command)) {
    if (option->get_positional()) text += " [\\fI" + roff(option->get_name()) + "\\fR]";
  }
  text += "\n" + commands_section(app, command) + options_section(command);
  if (!command.get_footer().empty()) {
    text += ".SH NOTES\n.nf\n" + roff(command.get_footer()) + "\n.fi\n";
  }
  text +=
      ".SH EXIT STATUS\n0 fine, 1 a check failed, 2 wrong use, 3 the environment lacks "
      "something, 130 interrupted.\n";
  if (&app != &command) text += fmt::format(".SH SEE ALSO\n\\fB{}\\fR(1)\n", app.get_name());
  return text;
}

std::optional<int> print_command_page(const CLI::App& app,
                                      const std::vector<std::string>& arguments) {
  if (arguments.empty()) return std::nullopt;
  const std::string wanted = arguments.size() == 2 ? arguments[1] : "";
  if (arguments[0] == "__completion" && (wanted == "bash" || wanted == "zsh")) {
    fmt::print("{}", wanted == "bash" ? bash_completion(app) : zsh_completion(app));
    return 0;
  }
  if (arguments[0] != "__man") return std::nullopt;
  std::vector<const CLI::App*> pages = commands_of(app);
  pages.insert(pages.begin(), &app);
  for (const CLI::App* page : pages) {
    if (wanted.empty()) fmt::print("{}\n", page_name(app, *page));
    if (wanted == page_name(app, *page)) {
      fmt::print("{}", manual_page(app, *page));
      return 0;
    }
  }
  return wanted.empty() ? 0 : report_error(wrong_use("there is no manual page '" + wanted + "'"));
}

}  // namespace gauntlet::cli
