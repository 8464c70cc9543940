// Does the program keep what it promises on its command line: exit codes, one clear sentence, JSON
// keys, help?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/machine/machine.h"
#include "tests/program.h"

namespace gauntlet::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

using Words = std::vector<std::string>;

/// Runs the binary in an empty folder, so that what it writes without being told to is seen.
struct Here {
  TemporaryFolder folder;

  Outcome operator()(const Words& arguments) const {
    Words argv = {GAUNTLET_BINARY};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return run_program(argv, folder.path());
  }
  json parsed(const Words& arguments) const {
    const Outcome outcome = (*this)(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out, nullptr, false);
  }
};

Words words(const std::string& text) {
  std::stringstream stream(text);
  Words result;
  for (std::string word; stream >> word;) result.push_back(word);
  return result;
}

Words keys_of(const json& object) {
  Words keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

int pairs_in_catalogue() {
  int count = 0;
  for (const auto& chapter : fs::directory_iterator(GAUNTLET_SOURCE_DIR "/catalog")) {
    if (!chapter.is_directory()) continue;
    for (const auto& pair : fs::directory_iterator(chapter.path())) {
      for (const char* source : {"pair.cc", "lab.cc", "engine_pair.cc"}) {
        count += fs::exists(pair.path() / source);
      }
    }
  }
  return count;
}

TEST(ListCommand, shows_every_pair_of_the_catalogue_as_json) {
  const json targets = Here().parsed({"list", "--format", "json"});
  ASSERT_TRUE(targets.is_array());
  EXPECT_GE(targets.size(), 30u);
  EXPECT_EQ(static_cast<int>(targets.size()), pairs_in_catalogue());
  for (const json& target : targets) {
    EXPECT_THAT(keys_of(target),
                testing::UnorderedElementsAre(
                    "id", "chapter", "name", "kinds", "sides", "technique", "title", "claim",
                    "claims", "goal", "backends", "needs", "yardstick_needs", "tags", "knobs"))
        << target;
  }
}

TEST(ListCommand, finds_nothing_to_complain_about_in_its_coverage) {
  const Outcome outcome = Here()({"list", "--coverage"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("named techniques"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("note:")));
}

struct WrongUse {
  std::string arguments;
  std::string sentence;  // part of it
};
void PrintTo(const WrongUse& use, std::ostream* out) { *out << use.arguments; }

std::string test_name(const testing::TestParamInfo<WrongUse>& info) {
  std::string name = info.param.arguments;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

class WrongUseOf : public testing::TestWithParam<WrongUse> {};

TEST_P(WrongUseOf, the_program_costs_one_sentence_and_writes_nothing) {
  const Here here;
  const Outcome outcome = here(words(GetParam().arguments));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr(GetParam().sentence));
  EXPECT_THAT(outcome.err, testing::StartsWith("gauntlet: "));
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(fs::is_empty(here.folder.path())) << "something was written";
}

INSTANTIATE_TEST_SUITE_P(
    Program, WrongUseOf,
    testing::Values(
        WrongUse{"rn", "there is no command 'rn', did you mean 'run'?"},
        WrongUse{"run", "say what to run"},
        WrongUse{"run --targets ch07:coalesed_copy", "did you mean 'ch07:coalesced_copy'?"},
        WrongUse{"run --targets coalesced_copy", "did you mean 'ch07:coalesced_copy'?"},
        WrongUse{"run --targets chapter", "the chapters are ch01"},
        WrongUse{"run --target ch07", "there is no option '--target', did you mean '--targets'?"},
        WrongUse{"run --targets ch07 --backed=cpu", "did you mean '--backend'?"},
        WrongUse{"run --targets ch07 --backend gpu",
                 "'gpu' is not one of auto, cpu, cuda, ranks and all"},
        WrongUse{"run --targets ch07 --profile min", "minimal"},
        WrongUse{"run --targets ch07 --iterations 1", "--iterations: Value 1 not in range 3"},
        WrongUse{"run --targets ch07 --format xml", "'xml' is not one of text and json"},
        WrongUse{"run --suite quik", "there is no suite 'quik', did you mean 'quick'?"},
        WrongUse{"run --targets ch07:coalesced_copy --set row=256", "did you mean 'rows'?"},
        WrongUse{"run --targets ch07:coalesced_copy --set rows=300", "must be a multiple of 256"},
        WrongUse{"run --targets ch07:coalesced_copy --set rows=0", "must be between"},
        WrongUse{"run --targets ch07:coalesced_copy --set rows", "--set takes key=value"},
        WrongUse{"run --targets ch07:coalesced_copy --sweep rows=256,x", "not a whole number"},
        WrongUse{"run --targets ch07:coalesced_copy --artifacts-dir /dev/null/runs",
                 "choose another with --artifacts-dir"},
        WrongUse{"run --resume latest", "make one with 'gauntlet run'"},
        WrongUse{"compare", "make one with 'gauntlet run'"},
        WrongUse{"history", "make one with 'gauntlet run'"},
        WrongUse{"history ch07:coalesed_copy", "did you mean 'ch07:coalesced_copy'?"},
        WrongUse{"report", "make one with 'gauntlet run'"},
        WrongUse{"list --tga memory", "did you mean '--tag'?"},
        WrongUse{"expectations imprt", "did you mean 'import'?"},
        WrongUse{"new ch07/x", "there is no folder 'catalog' here"}),
    test_name);

TEST(Help, of_every_command_has_an_example) {
  const Here here;
  const Outcome top = here({"--help"});
  EXPECT_EQ(top.code, 0);
  const auto at = top.out.find("Subcommands:\n");
  ASSERT_NE(at, std::string::npos);
  std::stringstream lines(top.out.substr(at));
  std::string line;
  std::getline(lines, line);
  int commands = 0;
  while (std::getline(lines, line) && line.starts_with("  ")) {
    const std::string command = words(line).front();
    const Outcome help = here({command, "--help"});
    EXPECT_EQ(help.code, 0) << command;
    EXPECT_THAT(help.out, HasSubstr("Example:  gauntlet " + command));
    ++commands;
  }
  EXPECT_GE(commands, 9);
}

TEST(RunCommand, skips_cuda_targets_without_a_gpu) {
  const MachineInfo machine = read_machine(true);
  if (!machine.gpus.empty()) GTEST_SKIP() << "there is a GPU: " << machine.gpus.front().name;
  const json run = Here().parsed(words("run --targets ch07 --backend cuda --format json"));
  ASSERT_TRUE(run.is_object());
  EXPECT_GE(run.at("results").size(), 10u);
  for (const json& result : run.at("results")) {
    EXPECT_EQ(result.at("status"), "skipped");
    EXPECT_EQ(result.at("reason"), machine.no_gpu_reason);
    EXPECT_TRUE(result.at("comparisons").empty());
  }
#ifdef GAUNTLET_HAVE_CUDA
  EXPECT_THAT(machine.no_gpu_reason, HasSubstr("no CUDA device"));
#endif
}

TEST(NewCommand, scaffolds_a_pair_that_compiles_and_refuses_to_overwrite_it) {
  const Here here;
  fs::create_directories(here.folder.path() / "catalog/ch07");
  std::ofstream(here.folder / "catalog/ch07/techniques") << "# closed list\ncoalescing  adjacent\n";
  const Outcome made = here({"new", "ch07/my_pair"});
  EXPECT_EQ(made.code, 0) << made.err;
  const fs::path pair = here.folder.path() / "catalog/ch07/my_pair";
  for (const char* file :
       {"pair.h", "pair.cc", "baseline.cc", "optimized.cc", "baseline.cu", "optimized.cu"}) {
    EXPECT_TRUE(fs::exists(pair / file)) << file;
  }
  for (const char* file : {"pair.cc", "baseline.cc", "optimized.cc"}) {
    const Outcome compiled = run_program(
        {"/usr/bin/env", GAUNTLET_CXX, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
         "-Wno-missing-field-initializers", "-I", here.folder.path(), "-I",
         std::string(GAUNTLET_SOURCE_DIR) + "/src", (pair / file).string()});
    EXPECT_EQ(compiled.code, 0) << compiled.err;
  }
  std::ofstream(pair / "pair.h") << "mine";
  const Outcome again = here({"new", "ch07/my_pair"});
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.err, HasSubstr("exists already"));
  EXPECT_EQ(read_text(pair / "pair.h"), "mine");
}

TEST(NewCommand, refuses_names_and_techniques_that_do_not_fit) {
  const Here here;
  fs::create_directories(here.folder.path() / "catalog/ch07");
  std::ofstream(here.folder / "catalog/ch07/techniques") << "coalescing  adjacent\n";
  for (const auto& [arguments, sentence] : std::vector<std::pair<std::string, std::string>>{
           {"new ch07/My-Pair", "is not a pair's name"},
           {"new my_pair", "is not a pair's name"},
           {"new ch07/../x", "is not a pair's name"},
           {"new ch08/my_pair", "ch08 has no list of techniques"},
           {"new ch07/my_pair --technique coalesing", "did you mean 'coalescing'?"},
           {"new ch07/my_pair --sides gpu", "gpu not in {cpu,cuda,both}"}}) {
    const Outcome outcome = here(words(arguments));
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(sentence));
  }
  EXPECT_FALSE(fs::exists(here.folder / "catalog/ch07/my_pair"));
}

}  // namespace
}  // namespace gauntlet::tests
