// The command line in other forms than --help, made of the same options: completion for shells and
// manual pages. Installing calls them by words that --help does not show.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"

namespace gauntlet::cli {

/// Prints what `__completion bash|zsh`, `__man PAGE` or `__man` (the names of all pages) asks for
/// and returns the exit code; nothing where the arguments ask for none of it.
std::optional<int> print_command_page(const CLI::App& app,
                                      const std::vector<std::string>& arguments);

std::string bash_completion(const CLI::App& app);
std::string zsh_completion(const CLI::App& app);
/// Of the program, or of one command.
std::string manual_page(const CLI::App& app, const CLI::App& command);

/// Those that --help shows.
std::vector<const CLI::App*> commands_of(const CLI::App& app);
std::vector<const CLI::Option*> options_of(const CLI::App& command);

/// What an option's value is, for a shell that completes it.
struct ValueHint {
  enum class Kind { none, words, file, other };  // none: the option takes no value
  Kind kind = Kind::none;
  std::string name;                // FILE, N, SECONDS
  std::vector<std::string> words;  // of a choice
};
ValueHint value_of(const CLI::Option& option);

}  // namespace gauntlet::cli
