// Would systemd take the unit of deploy/, and does the server know what it names? The dashboard has
// a test beside the metrics.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>

#include "tests/program.h"

namespace gauntlet::tests {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kVerifier = "/usr/bin/systemd-analyze";
const std::string kInstalled = "/usr/local/bin/gauntlet";

std::string unit() {
  return read_text(fs::path(GAUNTLET_SOURCE_DIR) / "deploy" / "gauntlet.service");
}

/// What systemd says of a unit that starts this build's program.
Outcome verified(std::string text) {
  const TemporaryFolder folder;
  text = std::regex_replace(text, std::regex(kInstalled + " "), GAUNTLET_BINARY " ");
  std::ofstream(folder / "gauntlet.service") << text;
  return run_program({kVerifier, "verify", "--man=no", folder / "gauntlet.service"});
}

TEST(Deploy, systemd_finds_no_fault_with_the_unit) {
  if (!fs::exists(kVerifier)) GTEST_SKIP() << "not tried: there is no " << kVerifier;
  const Outcome good = verified(unit());
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_THAT(good.err, Not(HasSubstr("gauntlet.service")));
  // Keys that systemd does not know are only a remark to it.
  const Outcome misspelt = verified(unit() + "\n[Service]\nProtectHoome=yes\n");
  EXPECT_THAT(misspelt.err, HasSubstr("ProtectHoome"));
}

/// GAUNTLET_API_KEY -> "--api-key ".
std::string option_of(const std::string& variable) {
  std::string option = "--";
  for (const char c : variable.substr(std::string("GAUNTLET_").size())) {
    option += c == '_' ? '-' : static_cast<char>(c - 'A' + 'a');
  }
  return option + " ";
}

TEST(Deploy, the_unit_starts_a_command_and_names_variables_that_exist) {
  const std::string text = unit();
  EXPECT_THAT(text, HasSubstr("ExecStart=" + kInstalled + " serve $GAUNTLET_ARGS"));
  const Outcome help = run_program({GAUNTLET_BINARY, "serve", "--help"});
  EXPECT_EQ(help.code, 0);
  const std::regex variable("GAUNTLET_[A-Z_]+");
  std::set<std::string> names;
  for (auto at = std::sregex_iterator(text.begin(), text.end(), variable);
       at != std::sregex_iterator(); ++at) {
    names.insert(at->str());
  }
  EXPECT_EQ(names.erase("GAUNTLET_ARGS"), 1u);
  EXPECT_GE(names.size(), 2u);
  for (const std::string& name : names) EXPECT_THAT(help.out, HasSubstr(option_of(name)));
}

}  // namespace
}  // namespace gauntlet::tests
