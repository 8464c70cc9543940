// Does the program offer every option of the engine's table, and is its flag written nowhere else?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/option_table.h"
#include "tests/program.h"

namespace gauntlet::tests {
namespace {

namespace fs = std::filesystem;

using testing::ElementsAre;
using testing::HasSubstr;

/// Sources of the program that hold this text.
std::vector<std::string> files_with(const std::string& text) {
  std::vector<std::string> found;
  const fs::path root = GAUNTLET_SOURCE_DIR;
  for (const auto& entry : fs::recursive_directory_iterator(root / "src")) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".h") && (!name.ends_with(".cc") || name.ends_with("_test.cc"))) continue;
    if (read_text(entry.path()).find(text) != std::string::npos) found.push_back(name);
  }
  return found;
}

TEST(OptionPlaces, are_one_for_an_option_and_its_rows) {
  for (const engine::OptionEntry& entry : engine::option_table()) {
    if (entry.flag.group == engine::FlagGroup::apart) continue;  // found by its name
    EXPECT_THAT(files_with("\"" + entry.flag.name + "\""),
                ElementsAre(testing::StartsWith("option_table_")));
    for (const auto& row : {entry.cpu.row, entry.cuda.row}) {
      if (row) {
        EXPECT_THAT(files_with("\"" + row->title + "\""),
                    ElementsAre(testing::StartsWith("option_table_")));
      }
    }
  }
}

TEST(OptionPlaces, follow_into_the_help_of_a_command) {
  const Outcome help = run_program({GAUNTLET_BINARY, "bench", "--help"});
  for (const engine::OptionEntry& entry : engine::option_table()) {
    EXPECT_THAT(help.out, HasSubstr(entry.flag.name));
    EXPECT_THAT(help.out, HasSubstr(entry.flag.help.substr(0, entry.flag.help.find(' '))));
  }
}

}  // namespace
}  // namespace gauntlet::tests
