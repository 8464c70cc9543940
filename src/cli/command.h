// What commands share: the context they run in, and how a command is added to the program.
#pragma once
#include <CLI/CLI.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/expected.h"
#include "lab/doctor/doctor.h"
#include "lab/targets/catalog.h"

namespace gauntlet::cli {

struct Context {
  const lab::Catalog& catalog;
  std::string program;                 // absolute path of this executable
  std::vector<std::string> arguments;  // without the program's name
  int exit_code = 0;
  /// What doctor is asked to look at instead of the machine; none: the machine.
  std::function<Expected<std::vector<lab::doctor::Finding>>()> checks;
};

enum class Format { text, json };

/// Throws the usage error for a word that is not among an option's choices.
[[noreturn]] void refuse_choice(const std::string& option, const std::string& wrong,
                                const std::vector<std::string>& choices);

/// Adds an option that takes one of a few words; `otherwise` is the word where none is given.
void add_words(CLI::App& command, const std::string& option, const std::vector<std::string>& words,
               const std::string& otherwise, const std::string& help,
               const std::function<void(std::size_t)>& choose);

/// The same, each word with what it means.
template <class T>
void add_choice(CLI::App& command, const std::string& option, T& value,
                const std::vector<std::pair<std::string, T>>& choices, const std::string& help) {
  std::vector<std::string> words;
  std::string otherwise;
  for (const auto& [word, meaning] : choices) {
    words.push_back(word);
    if (meaning == value) otherwise = word;
  }
  add_words(command, option, words, otherwise, help,
            [choices, &value](std::size_t chosen) { value = choices[chosen].second; });
}

/// An option of other commands that this one has no use for; it is refused with the reason.
void refuse_option(CLI::App& command, const std::string& option, const std::string& why);

/// Adds --format text|json.
void add_format(CLI::App& command, Format& format);

inline double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

inline Error wrong_use(std::string message) { return {std::move(message), ErrorKind::wrong_use}; }

/// One sentence on stderr; returns the exit code of its kind.
int report_error(const Error& error);

/// What every binary has, and what those that link the engine have beside it: engine_commands.cc,
/// or nothing in the binaries of test catalogues.
void add_lab_commands(CLI::App& app, Context& context);
void add_engine_commands(CLI::App& app, Context& context);

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
void add_mesh(CLI::App& app, Context& context);
void add_convert(CLI::App& app, Context& context);
void add_generate(CLI::App& app, Context& context);
void add_perplexity(CLI::App& app, Context& context);
void add_bench(CLI::App& app, Context& context);
void add_chat(CLI::App& app, Context& context);
void add_analyze(CLI::App& app, Context& context);
void add_serve(CLI::App& app, Context& context);
void add_load(CLI::App& app, Context& context);
void add_tokenize(CLI::App& app, Context& context);

}  // namespace gauntlet::cli
