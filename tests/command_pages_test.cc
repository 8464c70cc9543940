// Completion and manual pages: does every option appear, and do shells and groff take them?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "tests/program.h"

namespace gauntlet::tests {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string page(const std::string& kind, const std::string& name) {
  const Outcome outcome = run_program({GAUNTLET_BINARY, kind, name});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return outcome.out;
}

std::vector<std::string> page_names() {
  std::istringstream lines(run_program({GAUNTLET_BINARY, "__man"}).out);
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) names.push_back(line);
  return names;
}

/// The long options that a command's --help shows.
std::set<std::string> options_of(const std::string& page_name) {
  std::vector<std::string> argv = {GAUNTLET_BINARY};
  if (page_name != "gauntlet") argv.push_back(page_name.substr(std::string("gauntlet-").size()));
  argv.push_back("--help");
  const std::string help = run_program(argv).out;
  std::set<std::string> names;
  const std::regex option("\n  (?:-[a-zA-Z],)?(--[a-z-]+)");
  for (auto at = std::sregex_iterator(help.begin(), help.end(), option);
       at != std::sregex_iterator(); ++at) {
    names.insert((*at)[1]);
  }
  return names;
}

TEST(CommandPages, every_command_and_option_of_help_is_in_all_of_them) {
  const std::string bash = page("__completion", "bash");
  const std::string zsh = page("__completion", "zsh");
  const auto names = page_names();
  EXPECT_GE(names.size(), 18u);
  for (const std::string& name : names) {
    const std::string manual = page("__man", name);
    const auto options = options_of(name);
    EXPECT_FALSE(options.empty()) << name;
    for (const std::string& option : options) {
      EXPECT_THAT(bash, HasSubstr(option)) << name;
      EXPECT_THAT(zsh, HasSubstr("'" + option + "[")) << name;
      EXPECT_THAT(manual, HasSubstr("\\fB" + std::regex_replace(option, std::regex("-"), "\\-")))
          << name;
    }
  }
}

TEST(CommandPages, help_does_not_show_the_words_that_make_them) {
  EXPECT_EQ(run_program({GAUNTLET_BINARY, "--help"}).out.find("__"), std::string::npos);
  EXPECT_EQ(run_program({GAUNTLET_BINARY, "__completion", "fish"}).code, 2);
  EXPECT_EQ(run_program({GAUNTLET_BINARY, "__man", "gauntlet-none"}).code, 2);
}

TEST(CommandPages, shells_parse_the_completion) {
  const TemporaryFolder folder;
  std::ofstream(folder / "bash") << page("__completion", "bash");
  const Outcome bash = run_program({"/bin/bash", "-n", folder / "bash"});
  EXPECT_EQ(bash.code, 0) << bash.err;
  if (!fs::exists("/bin/zsh")) GTEST_SKIP() << "zsh's was not tried: there is no /bin/zsh";
  std::ofstream(folder / "zsh") << page("__completion", "zsh");
  const Outcome zsh = run_program({"/bin/zsh", "-n", folder / "zsh"});
  EXPECT_EQ(zsh.code, 0) << zsh.err;
}

/// What bash offers for the last of these words.
std::string completed(const std::string& words, const std::string& index) {
  const TemporaryFolder folder;
  std::ofstream(folder / "script")
      << page("__completion", "bash") << "compopt() { :; }\nCOMP_WORDS=(" << words
      << ")\nCOMP_CWORD=" << index << "\n_gauntlet\necho \"${COMPREPLY[*]}\"\n";
  return run_program({"/bin/bash", folder / "script"}).out;
}

TEST(CommandPages, bash_offers_commands_options_and_words) {
  EXPECT_EQ(completed("gauntlet ser", "1"), "serve\n");
  EXPECT_EQ(completed("gauntlet serve --print-c", "2"), "--print-config\n");
  EXPECT_EQ(completed("gauntlet serve --batching s", "3"), "static\n");
  EXPECT_EQ(completed("gauntlet serve --port 80", "3"), "\n");
  EXPECT_EQ(completed("gauntlet serve --batching static --chunk", "4"),
            "--chunk --chunked-prefill\n");
}

TEST(CommandPages, groff_has_nothing_to_say_about_the_manual) {
  if (!fs::exists("/usr/bin/groff")) GTEST_SKIP() << "not tried: there is no /usr/bin/groff";
  const TemporaryFolder folder;
  for (const std::string& name : page_names()) {
    const std::string file = folder / (name + ".1");
    std::ofstream(file) << page("__man", name);
    const Outcome drawn =
        run_program({"/usr/bin/groff", "-man", "-Kutf8", "-Tutf8", "-ww", "-rLL=100n", file});
    EXPECT_EQ(drawn.code, 0) << name;
    EXPECT_EQ(drawn.err, "") << name;
    EXPECT_THAT(drawn.out, HasSubstr("NAME")) << name;
  }
}

}  // namespace
}  // namespace gauntlet::tests
