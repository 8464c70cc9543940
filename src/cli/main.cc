// gauntlet: one binary, one file per command.
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "cli/command.h"
#include "cli/command_pages.h"
#include "core/build_info.h"
#include "core/text/text.h"
#include "lab/run/worker.h"

namespace gauntlet::cli {
namespace {

/// The sentence for a word that no option and no command takes, with the nearest valid one where
/// there is one.
std::string explain_extra(const CLI::App& app, const CLI::App& command, const std::string& wrong) {
  std::vector<std::string> valid;
  std::string text;
  if (wrong.starts_with("-")) {
    for (const CLI::Option* option : command.get_options()) {
      for (const std::string& name : option->get_lnames()) valid.push_back("--" + name);
    }
    text = "there is no option '" + wrong + "'";
  } else {
    for (const CLI::App* sub : command.get_subcommands([](const CLI::App*) { return true; })) {
      valid.push_back(sub->get_name());
    }
    text = &command == &app ? "there is no command '" + wrong + "'"
                            : "'" + wrong + "' is not expected here";
  }
  const std::string near = nearest(wrong.substr(0, wrong.find('=')), valid);
  return near.empty() ? text : text + ", did you mean '" + near + "'?";
}

/// The sentence for a command line that does not parse.
std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = &app;
  for (const CLI::App* used : app.get_subcommands()) command = used;
  // A wrong command arrives as "a subcommand is required", with the wrong word left over.
  const auto extras = app.remaining(true);
  const bool extra = !extras.empty() && (dynamic_cast<const CLI::ExtrasError*>(&error) ||
                                         dynamic_cast<const CLI::RequiredError*>(&error));
  const std::string text = extra ? explain_extra(app, *command, extras.front()) : error.what();
  const std::string what = command == &app ? "gauntlet" : "gauntlet " + command->get_name();
  return text + " (see '" + what + " --help')";
}

int run(int argc, char** argv) {
  const lab::Catalog catalog = lab::load_catalog();
  if (argc == 3 && std::string(argv[1]) == lab::kWorkerCommand) {
    return lab::worker_main(catalog, argv[2]);
  }
  Context context{.catalog = catalog,
                  .program = std::filesystem::read_symlink("/proc/self/exe"),
                  .arguments = {argv + 1, argv + argc}};
  CLI::App app("gauntlet: what a GPU or CPU technique buys on this machine, measured and verified",
               "gauntlet");
  app.require_subcommand(1);
  app.set_version_flag("--version", build_info().version + " (" + build_info().commit + ")");
  app.footer("Start with:  gauntlet list   then   gauntlet run --suite quick");
  add_lab_commands(app, context);
  add_engine_commands(app, context);
  if (const auto printed = print_command_page(app, context.arguments)) return *printed;
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    if (argc == 1) {
      std::fputs(app.help().c_str(), stdout);
      return 2;
    }
    std::fprintf(stderr, "gauntlet: %s\n", explain(app, error).c_str());
    return 2;
  }
  return context.exit_code;
}

}  // namespace

void add_lab_commands(CLI::App& app, Context& context) {
  add_list(app, context);
  add_run(app, context);
  add_compare(app, context);
  add_history(app, context);
  add_expectations(app, context);
  add_report(app, context);
  add_roofline(app, context);
  add_doctor(app, context);
  add_new(app, context);
}

void add_format(CLI::App& command, Format& format) {
  add_choice<Format>(command, "--format", format, {{"text", Format::text}, {"json", Format::json}},
                     "text or json");
}

void refuse_choice(const std::string& option, const std::string& wrong,
                   const std::vector<std::string>& choices) {
  std::string text = "'" + wrong + "' is not one of ";
  for (std::size_t i = 0; i < choices.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == choices.size() ? " and " : ", ") + choices[i];
  }
  const std::string near = nearest(wrong, choices);
  if (!near.empty()) text += ", did you mean '" + near + "'?";
  throw CLI::ValidationError(option, text);
}

void add_words(CLI::App& command, const std::string& option, const std::vector<std::string>& words,
               const std::string& otherwise, const std::string& help,
               const std::function<void(std::size_t)>& choose) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : "|") + word;
  const auto take = [option, words, choose](const std::string& word) {
    const auto found = std::ranges::find(words, word);
    if (found == words.end()) refuse_choice(option, word, words);
    choose(static_cast<std::size_t>(found - words.begin()));
  };
  command.add_option_function<std::string>(option, take, help)
      ->option_text(text)
      ->default_str(otherwise);
}

void refuse_option(CLI::App& command, const std::string& option, const std::string& why) {
  const auto refuse = [option, why](const std::string&) {
    throw CLI::ValidationError(option, why);
  };
  command.add_option_function<std::string>(option, refuse)->group("");
}

int report_error(const Error& error) {
  std::fprintf(stderr, "gauntlet: %s\n", error.message.c_str());
  return static_cast<int>(error.kind);
}

}  // namespace gauntlet::cli

int main(int argc, char** argv) {
  try {
    return gauntlet::cli::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gauntlet: internal error: %s\n", error.what());
    return 1;
  }
}
