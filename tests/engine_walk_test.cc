// Does the walk of a chat request name files that are there, and functions that are in them?
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "core/os/files.h"

namespace gauntlet::tests {
namespace {

constexpr std::size_t kMostFiles = 10;

struct Stop {
  std::string file;
  std::vector<std::string> functions;
};

/// "1. `src/a.cc`: `f`, `A::g`. What happens there."
std::vector<Stop> stops_of(const std::string& page) {
  const std::size_t begin = page.find("## A chat request");
  if (begin == std::string::npos) return {};
  const std::string walk = page.substr(begin, page.find("\n## ", begin + 1) - begin);
  static const std::regex kStop(R"((?:^|\n)\d+\. `([^`]+)`:((?: `[^`]+`,?)+)\.)");
  static const std::regex kFunction("`([^`]+)`");
  std::vector<Stop> stops;
  for (std::sregex_iterator at(walk.begin(), walk.end(), kStop), end; at != end; ++at) {
    Stop& stop = stops.emplace_back();
    stop.file = (*at)[1];
    const std::string names = (*at)[2];
    for (std::sregex_iterator name(names.begin(), names.end(), kFunction); name != end; ++name) {
      stop.functions.push_back((*name)[1]);
    }
  }
  return stops;
}

/// Defined, not only called: a line begins with its type, and goes on or ends with a parameter.
bool defines(const std::string& source, const std::string& function) {
  const std::regex definition("(^|\n) *[A-Za-z_][\\w:<>,&*\\[\\] ]* [&*]?" + function + "\\(");
  return std::regex_search(source, definition);
}

TEST(EngineWalk, names_at_most_ten_files_and_functions_that_are_defined_there) {
  const std::string root = GAUNTLET_SOURCE_DIR;
  const auto stops = stops_of(read_file(root + "/docs/engine.md").value());
  ASSERT_GE(stops.size(), 6u);
  EXPECT_LE(stops.size(), kMostFiles);
  for (const Stop& stop : stops) {
    const auto source = read_file(root + "/" + stop.file);
    ASSERT_TRUE(source) << stop.file;
    EXPECT_FALSE(stop.functions.empty()) << stop.file;
    for (const std::string& function : stop.functions) {
      EXPECT_TRUE(defines(*source, function)) << stop.file << " does not define " << function;
    }
  }
}

TEST(EngineWalk, is_read_as_it_is_written) {
  const auto stops = stops_of(
      "# x\n## A chat request\n\n1. `a.cc`: `f`, `A::g`. Text `h`.\n2. `b.cc`: `i`. T\n\n## y\n3. "
      "`c.cc`: `j`.\n");
  ASSERT_EQ(stops.size(), 2u);
  EXPECT_EQ(stops[0].file, "a.cc");
  EXPECT_EQ(stops[0].functions, (std::vector<std::string>{"f", "A::g"}));
  EXPECT_TRUE(defines("x;\nstd::vector<int> A::g(int a) {", "A::g"));
  EXPECT_FALSE(defines("  return g(1);\n", "A::g"));
}

}  // namespace
}  // namespace gauntlet::tests
