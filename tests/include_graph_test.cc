// Do the folders include only what the design lets them know?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "tests/program.h"

namespace gauntlet::tests {
namespace {

namespace fs = std::filesystem;

using Folders = std::set<std::string>;

/// What each folder of src/ may include beside itself.
std::map<std::string, Folders> allowed_in_src() {
  std::map<std::string, Folders> allowed;
  allowed["core"] = {};
  allowed["ptx"] = {};
  allowed["stats"] = {"core"};
  allowed["kernels"] = {"core", "ptx"};
  allowed["model"] = {"core", "ptx", "kernels"};
  allowed["engine"] = {"core", "stats", "ptx", "kernels", "model"};
  allowed["server"] = {"core", "stats", "ptx", "kernels", "model", "engine"};
  allowed["cluster"] = allowed["server"];
  allowed["lab"] = {"core", "stats"};          // and ptx in device code
  allowed["load"] = {"core", "stats", "lab"};  // the look of its page; the client knows only HTTP
  allowed["study"] = {"core",   "stats",  "ptx",     "kernels", "model",
                      "engine", "server", "cluster", "lab",     "load"};
  allowed["cli"] = allowed["study"];
  allowed["cli"].insert("study");
  return allowed;
}

/// Rooms of a folder that may include only some of their neighbours; others are free to.
std::map<std::string, Folders> allowed_rooms() {
  std::map<std::string, Folders> allowed = {
      {"core/text", {"core"}},
      {"core/os", {"core", "core/text"}},
      {"core/ranks", {"core", "core/os"}},
      {"kernels/ref", {}},
      {"kernels/cpu", {}},
      {"kernels/cuda", {}},
      {"engine/grammar", {}},
      {"engine/kv", {}},
      {"engine/sampling", {}},
      {"engine/steps", {"engine", "engine/kv", "engine/sampling"}},
      {"engine/cpu", {"engine", "engine/kv", "engine/steps"}},
      {"engine/cuda", {"engine", "engine/kv", "engine/steps"}},
      // A drafter is what speculation says it is; the steps beside it know of none.
      {"engine/cuda/draft", {"engine/cuda", "engine/speculation", "engine/steps"}},
      {"engine/speculation", {"engine", "engine/kv", "engine/sampling", "engine/steps"}},
      {"engine/ranks", {"engine", "engine/cpu", "engine/kv", "engine/steps"}},
      {"engine/serving", {"engine/kv", "engine/sampling", "engine/speculation", "engine/steps"}},
      {"engine/measure", {"engine/serving", "engine/speculation", "engine/steps"}},
      {"lab/author", {}},
      {"lab/targets", {"lab/author"}},
      {"lab/ceilings", {"lab/author"}},
      {"lab/profile", {"lab/author"}},
      {"lab/measure", {"lab/author", "lab/records", "lab/targets"}},
      {"server/http", {}},
      {"server/metrics", {}},
      {"server/structured", {"server/http"}},
      {"server/openai", {"server/http", "server/metrics", "server/structured", "server"}}};
  for (const char* room : {"attention", "product", "routing", "sampling"}) {
    allowed[std::string("kernels/cuda/") + room] = {"kernels/cuda"};
  }
  // Rows pass between the others, and an unfused kernel does what one of theirs has fused.
  allowed["kernels/cuda/rows"] = {"kernels/cuda", "kernels/cuda/attention", "kernels/cuda/routing",
                                  "kernels/cuda/sampling"};
  return allowed;
}

/// What only the tests of a room may include beside that.
std::map<std::string, Folders> allowed_in_tests() {
  return {{"core/os", {"core/machine"}},
          {"kernels/cpu", {"kernels/ref"}},
          {"kernels/cuda/attention", {"kernels/ref"}},
          {"engine/steps", {"engine/serving"}},
          {"engine/cuda/draft", {"engine", "engine/serving"}},
          {"engine/serving", {"engine"}},
          {"engine/speculation", {"engine/serving"}},
          {"lab/targets", {"lab/measure"}}};
}

/// A test, and what tests share: fake_runner.h, attention_scenario.h, product_case.h.
bool is_of_tests(const std::string& path) {
  static const std::regex kOfTests("(^|.*/)(fake_\\w+|\\w+_(test|scenario|case))\\.(h|cc)");
  return std::regex_match(path, kOfTests);
}

/// The deepest folder that has a rule: "server/http" of "server/http/wire/request_head.h"; or else
/// the folder of the second level, "load/http", or the first, "server" of "server/page.h".
std::string room_of(const std::string& path) {
  const auto rooms = allowed_rooms();
  for (std::size_t end = path.rfind('/'); end != std::string::npos && end > 0;
       end = path.rfind('/', end - 1)) {
    if (rooms.contains(path.substr(0, end))) return path.substr(0, end);
  }
  const std::size_t folder_ends = path.find('/');
  const std::size_t room_ends = path.find('/', folder_ends + 1);
  return path.substr(0, room_ends == std::string::npos ? path.rfind('/') : room_ends);
}

bool is_source(const fs::path& path) {
  static const Folders kExtensions = {".h", ".cc", ".inc", ".cu", ".cuh"};
  return kExtensions.contains(path.extension().string());
}

std::vector<std::string> includes_of(const std::string& text) {
  static const std::regex kInclude("^\\s*#\\s*include\\s*\"([^\"]+)\"");
  std::vector<std::string> includes;
  std::stringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_search(line, match, kInclude)) includes.push_back(match[1]);
  }
  return includes;
}

std::string first_folder(const std::string& path) { return path.substr(0, path.find('/')); }

/// A folder of the catalogue: those with an engine_pair.cc may use the engine.
enum class PairKind { plain, engine_backed };

PairKind kind_of(const fs::path& file) {
  return fs::exists(file.parent_path() / "engine_pair.cc") ? PairKind::engine_backed
                                                           : PairKind::plain;
}

/// Empty when a file, named by its path in the source tree, may include this; otherwise why not.
std::string refusal(const std::string& file, const std::string& include,
                    PairKind pair = PairKind::plain) {
  const bool device = file.ends_with(".cu") || file.ends_with(".cuh");
  const std::string top = first_folder(include);
  if (file.starts_with("src/")) {
    const auto rules = allowed_in_src();
    const std::string folder = first_folder(file.substr(4));
    const auto rule = rules.find(folder);
    if (rule == rules.end()) return "src/" + folder + " has no rule in this test";
    if (top == "catalog") return "nothing in src/ includes the catalogue";
    const bool known =
        top == folder || rule->second.contains(top) || (folder == "lab" && device && top == "ptx");
    if (!known) return "src/" + folder + " must not know " + top;
    const auto rooms = allowed_rooms();
    const std::string room = room_of(file.substr(4));
    const auto neighbours = rooms.find(room);
    const std::string wanted = room_of(include);
    if (neighbours == rooms.end() || top != folder || wanted == room) return "";
    if (neighbours->second.contains(wanted)) return "";
    const auto of_tests = allowed_in_tests();
    const auto more = of_tests.find(room);
    const bool test_may =
        is_of_tests(file) && more != of_tests.end() && more->second.contains(wanted);
    return test_may ? "" : room + " must not know " + wanted;
  }
  if (file.starts_with("catalog/labs/")) return "";  // labs may use everything
  if (include.starts_with("catalog/")) {
    const std::string own = fs::path(file).parent_path().string() + "/";
    return include.starts_with(own) ? "" : "a pair includes only its own folder of the catalogue";
  }
  static const Folders kOfEngine = {"stats", "kernels", "model", "engine", "server", "load"};
  if (pair == PairKind::engine_backed && kOfEngine.contains(top)) return "";
  if (top == "lab") {
    if (include == "lab/author/lab_counts.h") return "what a pair counts is not the lab's";
    return include.starts_with("lab/author/") ? "" : "of the lab, a pair knows lab/author alone";
  }
  const bool known = top == "core" || (top == "ptx" && device);
  return known ? ""
               : "a chapter's pair knows lab/author, core and (in device code) ptx, not " + top;
}

TEST(IncludeGraph, holds_the_arrows_of_the_design) {
  const fs::path root = GAUNTLET_SOURCE_DIR;
  int files = 0;
  Folders seen;  // extensions, and folders below another
  for (const char* below : {"src", "catalog"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / below)) {
      if (!entry.is_regular_file() || !is_source(entry.path())) continue;
      ++files;
      seen.insert(entry.path().extension().string());
      seen.insert(fs::relative(entry.path().parent_path(), root).string());
      const std::string file = fs::relative(entry.path(), root).string();
      for (const std::string& include : includes_of(read_text(entry.path()))) {
        EXPECT_EQ(refusal(file, include, kind_of(entry.path())), "")
            << file << " includes \"" << include << "\"";
        EXPECT_TRUE(fs::exists(root / "src" / include) || fs::exists(root / include))
            << file << " includes \"" << include << "\", which is not below src/ nor the root";
      }
    }
  }
  EXPECT_GT(files, 100) << "the scan found too little to mean anything";
  EXPECT_THAT(seen, testing::IsSupersetOf(
                        {".inc", ".cuh", "src/kernels/cuda/product", "src/server/http/wire"}));
}

TEST(IncludeGraph, has_no_folder_that_nobody_can_survey) {
  constexpr int kMostFiles = 40;
  const fs::path root = GAUNTLET_SOURCE_DIR;
  std::map<std::string, int> files;  // by folder
  for (const char* below : {"src", "catalog", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / below)) {
      const std::string name = entry.path().filename().string();
      if (entry.is_regular_file() && name.find('.') != std::string::npos) {
        ++files[fs::relative(entry.path().parent_path(), root).string()];
      }
    }
  }
  for (const auto& [folder, count] : files) {
    if (folder.find("node_modules") != std::string::npos) continue;  // npm's
    EXPECT_LE(count, kMostFiles) << folder << ": what belongs together is a room of its own";
  }
  EXPECT_GT(files["src/engine/cpu"], 10) << "the scan found too little to mean anything";
}

TEST(IncludeGraph, refuses_what_the_design_forbids) {
  EXPECT_NE(refusal("src/core/a.h", "lab/pair.h"), "");
  EXPECT_NE(refusal("src/core/a.cu", "ptx/mma.cuh"), "");
  EXPECT_NE(refusal("src/ptx/a.cuh", "core/check.h"), "");
  EXPECT_NE(refusal("src/core/a.cc", "stats/interval.h"), "");
  EXPECT_NE(refusal("src/stats/a.cc", "lab/measure/measure.h"), "");
  EXPECT_NE(refusal("src/kernels/a.cc", "stats/interval.h"), "");
  EXPECT_EQ(refusal("src/engine/a.cc", "stats/interval.h"), "");
  EXPECT_NE(refusal("src/lab/a.cc", "ptx/mma.cuh"), "");
  EXPECT_EQ(refusal("src/lab/a.cu", "ptx/mma.cuh"), "");
  EXPECT_NE(refusal("src/lab/a.cc", "engine/serving/scheduler.h"), "");
  EXPECT_NE(refusal("src/load/a.cc", "server/api.h"), "");
  EXPECT_NE(refusal("src/lab/a.cc", "load/http/client.h"), "");
  EXPECT_NE(refusal("src/server/a.cc", "cluster/router.h"), "");
  EXPECT_NE(refusal("src/server/http/a.cc", "server/openai/api.h"), "");
  EXPECT_NE(refusal("src/server/http/a.cc", "server/page.h"), "");
  EXPECT_EQ(refusal("src/server/openai/a.cc", "server/http/http.h"), "");
  EXPECT_EQ(refusal("src/server/serving_test.cc", "server/http/http.h"), "");
  EXPECT_NE(refusal("src/server/http/wire/a.cc", "server/openai/api.h"), "");
  EXPECT_EQ(refusal("src/kernels/cuda/product/a.cu", "kernels/cuda/launch.cuh"), "");
  EXPECT_NE(refusal("src/kernels/cuda/product/a.cu", "kernels/cuda/attention/kv_cache.h"), "");
  EXPECT_NE(refusal("src/kernels/cuda/launch.cuh", "kernels/cuda/product/product.h"), "");
  EXPECT_NE(refusal("src/kernels/cpu/a.inc", "kernels/ref/ops.h"), "");
  EXPECT_EQ(refusal("src/kernels/cpu/kernels_test.cc", "kernels/ref/ops.h"), "");
  EXPECT_NE(refusal("src/engine/steps/a.cc", "engine/serving/service.h"), "");
  EXPECT_EQ(refusal("src/engine/steps/a_test.cc", "engine/serving/service.h"), "");
  EXPECT_NE(refusal("src/engine/cpu/a_test.cc", "engine/serving/service.h"), "");
  EXPECT_NE(refusal("src/engine/cpu/a.cc", "engine/cuda/buffers.h"), "");
  EXPECT_NE(refusal("src/engine/cuda/a.cc", "engine/speculation/drafter.h"), "");
  EXPECT_NE(refusal("src/engine/cuda/a.cc", "engine/cuda/draft/draft_head.h"), "");
  EXPECT_NE(refusal("src/cli/a.cc", "catalog/ch07/x/pair.h"), "");
  EXPECT_NE(refusal("src/newcomer/a.cc", "core/check.h"), "");
  EXPECT_NE(refusal("catalog/ch07/x/pair.cc", "catalog/ch07/y/pair.h"), "");
  EXPECT_NE(refusal("catalog/ch07/x/optimized.cu", "kernels/cuda/gemm.h"), "");
  EXPECT_EQ(refusal("catalog/ch07/x/pair.cc", "catalog/ch07/x/tile.h"), "");
  EXPECT_NE(refusal("catalog/ch07/x/pair.cc", "lab/measure/measure.h"), "");
  EXPECT_EQ(refusal("catalog/ch07/x/pair.cc", "lab/author/pair.h"), "");
  EXPECT_NE(refusal("catalog/ch07/x/pair.cc", "lab/targets/target.h"), "");
  EXPECT_NE(refusal("catalog/ch07/x/pair.cc", "lab/author/lab_counts.h"), "");
  EXPECT_NE(refusal("src/lab/author/a.cc", "lab/targets/target.h"), "");
  EXPECT_NE(refusal("catalog/ch15/x/baseline.cc", "engine/serving/service.h"), "");
  EXPECT_EQ(
      refusal("catalog/ch15/x/baseline.cc", "engine/serving/service.h", PairKind::engine_backed),
      "");
  EXPECT_NE(refusal("catalog/ch15/x/baseline.cc", "study/bench/duel.h", PairKind::engine_backed),
            "");
  EXPECT_EQ(refusal("catalog/labs/x/rung_1.cu", "kernels/cuda/gemm.h"), "");
}

}  // namespace
}  // namespace gauntlet::tests
