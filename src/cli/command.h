// What commands share: the context they run in, and how a command is added to the program.
#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "core/expected.h"
#include "lab/catalog.h"

namespace gauntlet::cli {

struct Context {
  const lab::Catalog& catalog;
  std::string program;                 // absolute path of this executable
  std::vector<std::string> arguments;  // without the program's name
  int exit_code = 0;
};

enum class Format { text, json };

/// Adds --format text|json.
void add_format(CLI::App& command, Format& format);

/// One sentence on stderr; returns the exit code of its kind.
int report_error(const Error& error);

/// A command sets context.exit_code. Each lives in a file of its own name.
void add_list(CLI::App& app, Context& context);
void add_run(CLI::App& app, Context& context);
void add_compare(CLI::App& app, Context& context);
void add_history(CLI::App& app, Context& context);
void add_expectations(CLI::App& app, Context& context);
void add_report(CLI::App& app, Context& context);
void add_roofline(CLI::App& app, Context& context);
void add_doctor(CLI::App& app, Context& context);
void add_new(CLI::App& app, Context& context);

}  // namespace gauntlet::cli
