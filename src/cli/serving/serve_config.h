// A command's options out of a TOML file, and back into one: what `serve --config` reads and
// `serve --print-config` prints. A key is an option's long name without its dashes.
#pragma once
#include <string>

#include "cli/command.h"

namespace gauntlet::cli {

/// Adds --config and --print-config, which no file can hold.
void add_config_options(CLI::App& command, std::string& file, bool& print);

/// Sets what the file names and neither the command line nor the environment has given. Call it
/// after the command line is parsed. An error names file, line and key.
Expected<void> apply_config(CLI::App& command, const std::string& file);

/// Every option with what holds now, as a file that apply_config() reads. Secrets are not shown,
/// only that they are set.
std::string config_text(const CLI::App& command);

}  // namespace gauntlet::cli
