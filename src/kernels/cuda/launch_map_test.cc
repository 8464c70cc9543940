// Does the table in README.md name every launch and every kernel of the folder, and none that is
// gone?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace gauntlet::kernels::cuda {
namespace {

namespace fs = std::filesystem;

using Names = std::set<std::string>;

const fs::path kFolder = fs::path(GAUNTLET_SOURCE_DIR) / "src/kernels/cuda";

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// All that a pattern's first group matches.
Names found_in(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  Names names;
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match) {
    names.insert((*match)[1]);
  }
  return names;
}

/// What a header declares that takes a Launch: `void name(..., const Launch& how);`.
Names launches_in(const std::string& header) {
  return found_in(header, R"(\nvoid (\w+)\([^;{]*const Launch& how\);)");
}

Names kernels_in(std::string source) {
  source =
      std::regex_replace(source, std::regex(R"(__launch_bounds__\((?:[^()]|\([^()]*\))*\))"), "");
  return found_in(source, R"(__global__\s+void\s[^(;]*?(\w+)\s*\()");
}

struct Row {
  std::string file;
  Names kernels;
};

std::map<std::string, Row> rows_of(const std::string& readme) {
  std::map<std::string, Row> rows;
  std::istringstream lines(readme);
  const std::regex row(R"(\| `(\w+)` \| `([\w./]+)` \| ([^|]*) \|.*)");
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (!std::regex_match(line, match, row)) continue;
    EXPECT_FALSE(rows.contains(match[1])) << match[1];
    rows[match[1]] = {.file = match[2], .kernels = found_in(match[3], "`(\\w+)`")};
  }
  return rows;
}

TEST(LaunchMap, names_every_launch_and_every_kernel) {
  Names launches;
  std::map<std::string, Names> kernels;  // by file
  for (const auto& entry : fs::recursive_directory_iterator(kFolder)) {
    const std::string extension = entry.path().extension().string();
    const std::string file = fs::relative(entry.path(), kFolder).string();
    if (extension == ".h") launches.merge(launches_in(text_of(entry.path())));
    if (extension != ".cu" && extension != ".cuh") continue;
    if (Names found = kernels_in(text_of(entry.path())); !found.empty()) kernels[file] = found;
  }
  EXPECT_EQ(kernels.extract("device_facts.sm90a.cu").mapped(), Names{"sm90a_probe"});
  Names in_table;
  std::map<std::string, Names> kernels_in_table;
  for (const auto& [launch, row] : rows_of(text_of(kFolder / "README.md"))) {
    in_table.insert(launch);
    kernels_in_table[row.file].insert(row.kernels.begin(), row.kernels.end());
  }
  EXPECT_EQ(in_table, launches);
  EXPECT_EQ(kernels_in_table, kernels);
  EXPECT_GT(launches.size(), 20u) << "the scan found too little to mean anything";
}

TEST(LaunchMap, finds_launches_and_kernels_however_they_are_written) {
  EXPECT_EQ(launches_in("\nvoid one(const One& work, const Launch& how);\n"
                        "\nvoid two(const Two& work,\n         const Launch& how);\nint three();"),
            (Names{"one", "two"}));
  EXPECT_EQ(
      kernels_in("__global__ void plain(int a) {}\n"
                 "__global__ void CLUSTER __launch_bounds__(kA* (kB), kC)\n  bound(int a) {}\n"
                 "template <int k>\n__global__ void\n wrapped(int a) {}"),
      (Names{"plain", "bound", "wrapped"}));
}

}  // namespace
}  // namespace gauntlet::kernels::cuda
