// Completion for bash and zsh: commands, their options, and the words that an option takes.
#include <fmt/format.h>

#include <algorithm>

#include "cli/command_pages.h"

namespace gauntlet::cli {
namespace {

std::string joined(const std::vector<std::string>& parts, const char* between) {
  return fmt::format("{}", fmt::join(parts, between));
}

std::vector<std::string> typed_names(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  return names;
}

std::vector<std::string> names_of(const std::vector<const CLI::App*>& commands) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands) names.push_back(command->get_name());
  return names;
}

/// All that can stand where a word of this command begins.
std::vector<std::string> words_of(const CLI::App& command) {
  std::vector<std::string> words = names_of(commands_of(command));
  for (const CLI::Option* option : options_of(command)) {
    std::ranges::copy(typed_names(*option), std::back_inserter(words));
  }
  return words;
}

std::string bash_value_cases(const CLI::App& command) {
  std::string text;
  for (const CLI::Option* option : options_of(command)) {
    const ValueHint value = value_of(*option);
    std::vector<std::string> patterns;
    for (const std::string& name : typed_names(*option)) {
      patterns.push_back(command.get_name() + ":" + name);
    }
    if (patterns.empty() || value.kind == ValueHint::Kind::none) continue;
    std::string action = "return";
    if (value.kind == ValueHint::Kind::file) action = "compopt -o default; return";
    if (value.kind == ValueHint::Kind::words) {
      action = fmt::format("words=\"{}\"", joined(value.words, " "));
    }
    text += fmt::format("    {}) {} ;;\n", joined(patterns, "|"), action);
  }
  return text;
}

/// Text within single quotes and within the brackets of an _arguments spec.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out;
}

std::string zsh_option(const CLI::Option& option) {
  const ValueHint value = value_of(option);
  std::string action;
  if (value.kind == ValueHint::Kind::words) {
    action = fmt::format(":{}:({})", "word", joined(value.words, " "));
  } else if (value.kind == ValueHint::Kind::file) {
    action = fmt::format(":{}:_files", zsh_text(value.name));
  } else if (value.kind == ValueHint::Kind::other) {
    action = fmt::format(":{}: ", zsh_text(value.name));
  }
  std::string text;
  for (const std::string& name : typed_names(option)) {
    text +=
        fmt::format(" \\\n        '{}[{}]{}'", name, zsh_text(option.get_description()), action);
  }
  return text;
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  const auto commands = commands_of(app);
  std::string values;
  std::string words;
  for (const CLI::App* command : commands) {
    values += bash_value_cases(*command);
    words += fmt::format("    {}:*) words=\"{}\" ;;\n", command->get_name(),
                         joined(words_of(*command), " "));
  }
  return fmt::format(
      R"(# bash completion for gauntlet, made of its own options by 'gauntlet __completion bash'
_gauntlet() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  local command="" words="" word
  COMPREPLY=()
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case $word in
      {0}) command=$word; break ;;
    esac
  done
  case $command:$previous in
{1}{2}    *) words="{3}" ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  if [ ${{#COMPREPLY[@]}} -eq 0 ]; then compopt -o default; fi
}}
complete -F _gauntlet gauntlet
)",
      joined(names_of(commands), "|"), values, words, joined(words_of(app), " "));
}

std::string zsh_completion(const CLI::App& app) {
  std::string commands;
  std::string cases;
  for (const CLI::App* command : commands_of(app)) {
    commands +=
        fmt::format("    '{}:{}'\n", command->get_name(), zsh_text(command->get_description()));
    cases += fmt::format("    {})\n      _arguments", command->get_name());
    for (const CLI::Option* option : options_of(*command)) {
      if (!typed_names(*option).empty()) cases += zsh_option(*option);
    }
    const auto subs = names_of(commands_of(*command));
    cases += subs.empty() ? " \\\n        '*:file:_files' ;;\n"
                          : fmt::format(" \\\n        '1:command:({})' ;;\n", joined(subs, " "));
  }
  std::string program;
  for (const CLI::Option* option : options_of(app)) program += zsh_option(*option);
  return fmt::format(
      R"(#compdef gauntlet
# zsh completion for gauntlet, made of its own options by 'gauntlet __completion zsh'
_gauntlet() {{
  local context state line
  local -a commands
  commands=(
{0}  )
  _arguments -C{1} \
        '1:command:->command' '*::argument:->argument'
  if [[ $state == command ]]; then
    _describe command commands
    return
  fi
  [[ $state == argument ]] || return
  case $words[1] in
{2}  esac
}}
_gauntlet "$@"
)",
      commands, program, cases);
}

}  // namespace gauntlet::cli
