#include "tests/gpu/units.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <regex>
#include <set>

#include "core/text/text.h"
#include "tests/gpu/code_text.h"

namespace gauntlet::tests::gpu {
namespace {

namespace fs = std::filesystem;

using Parts = std::vector<std::string>;

bool starts_with_any(const std::string& path, const std::vector<const char*>& beginnings) {
  return std::ranges::any_of(beginnings, [&](const char* b) { return path.starts_with(b); });
}

bool is_side(const std::string& path) { return path.ends_with(".cu"); }

/// What tells one target's folder from another is its own; the rest of what it includes is the lab.
bool counts_as_lab(const std::string& path) {
  return starts_with_any(path, {"src/lab/", "src/stats/"}) ||
         (path.starts_with("src/core/") && !path.starts_with("src/core/cuda/"));
}

bool is_of_engine(const std::string& path) {
  return starts_with_any(path, {"src/engine/cuda/", "src/kernels/cuda/"});
}

/// Host code that tests without a GPU judge: model files, the CPU's kernels.
bool is_judged_on_cpu(const std::string& path) {
  return starts_with_any(path, {"src/model/", "src/kernels/cpu/"});
}

bool is_no_part(const std::string& path) {
  return is_test_source(path) || is_cpu_only_source(path) ||
         fs::path(path).filename().string().starts_with("fake_");
}

SourceSet lab_sources(const SourceTree& tree) {
  const std::vector<const char*> rooms = {
      "src/stats/",        "src/lab/author/",  "src/lab/targets/", "src/lab/measure/",
      "src/lab/ceilings/", "src/lab/profile/", "src/lab/run/"};
  const auto left_out = [](const std::string& path) {
    return is_no_part(path) ||
           starts_with_any(path, {"src/lab/report/", "src/lab/doctor/", "src/lab/targets/scaffold",
                                  "src/lab/targets/coverage"});
  };
  auto roots = tree.matching([&](const std::string& path) { return starts_with_any(path, rooms); });
  // It writes the index that says which sides a target has.
  if (tree.paths().contains("cmake/Catalog.cmake")) roots.push_back("cmake/Catalog.cmake");
  return tree.closure(roots, left_out);
}

SourceSet engine_sources(const SourceTree& tree) {
  return tree.closure(tree.matching(is_of_engine), [](const std::string& path) {
    return is_no_part(path) || is_judged_on_cpu(path);
  });
}

/// The sides of a folder with what declares them.
Parts with_declarations(const SourceTree& tree, Parts sides) {
  std::set<std::string> files(sides.begin(), sides.end());
  for (const std::string& side : sides) {
    for (const char* name : {"pair.cc", "engine_pair.cc", "lab.cc"}) {
      const std::string path = (fs::path(side).parent_path() / name).generic_string();
      if (tree.paths().contains(path)) files.insert(path);
    }
  }
  return {files.begin(), files.end()};
}

/// The catalogues that tests run, as the planted lies; the files of strict/ are only compiled.
Parts test_catalogs(const SourceTree& tree) {
  return with_declarations(tree, tree.matching([](const std::string& path) {
    return is_side(path) && path.starts_with("tests/") && !path.starts_with("tests/strict/");
  }));
}

/// The catalogue with its sides spoiled.
Parts sabotage_sources(const SourceTree& tree) {
  return tree.matching([](const std::string& path) {
    return path.starts_with("tests/sabotage/") && !is_cpu_only_source(path);
  });
}

/// Has a case for each target of the catalogue, each of which is a unit.
constexpr const char* kSabotageSuite = "SabotageOnGpu";

/// "kernels_test" of "src/kernels/cuda/router_test.cc"; empty where a file is part of no program.
std::string program_of(const std::string& path) {
  const auto slash = path.find('/', path.find('/') + 1);
  if (path.starts_with("src/")) return path.substr(4, slash - 4) + "_test";
  return slash == std::string::npos ? "whole_test" : "";
}

class Finder {
 public:
  explicit Finder(const SourceTree& tree)
      : tree_(tree), lab_(lab_sources(tree)), engine_(engine_sources(tree)) {
    flags_ = tree.closure(
        tree.matching([](const std::string& path) { return path == "cmake/Cuda.cmake"; }),
        [](const std::string&) { return false; });
  }

  Expected<Units> find(const std::string& sanitized) {
    find_targets();
    find_suites();
    find_sabotage();
    if (auto added = add_sanitized(sanitized); !added) return added.error();
    add_engine();
    std::ranges::sort(units_.all, {}, &Unit::name);
    find_unclaimed();
    return std::move(units_);
  }

 private:
  void add(Unit unit) {
    unit.sources["flags"] = flags_;
    units_.all.push_back(std::move(unit));
  }

  void find_targets() {
    std::map<std::string, Parts> roots;  // by folder
    for (const std::string& path : tree_.matching(is_side)) {
      if (path.starts_with("catalog/")) {
        roots[fs::path(path).parent_path().string()].push_back(path);
      }
    }
    for (auto& [folder, files] : roots) {
      const fs::path path = folder;
      const std::string chapter = path.parent_path().filename().string();
      const std::string id = chapter + ":" + path.filename().string();
      add({.name = "target " + id,
           .kind = UnitKind::target,
           .program = "gauntlet",
           .what = id,
           .chapter = chapter,
           .sources = {{"own", tree_.closure(with_declarations(tree_, files),
                                             [](const std::string& file) {
                                               return counts_as_lab(file) ||
                                                      is_judged_on_cpu(file) || is_no_part(file);
                                             })},
                       {"lab", lab_}}});
    }
  }

  void find_suites() {
    std::map<std::pair<std::string, std::string>, Parts> roots;  // by program and suite
    for (const std::string& path : tree_.matching(is_test_source)) {
      const std::string program = program_of(path);
      if (program.empty()) continue;
      for (const std::string& suite : gpu_suites(tree_.text(path))) {
        if (suite == kSabotageSuite) {
          sabotage_tests_.push_back(path);
        } else {
          roots[{program, suite}].push_back(path);
        }
      }
    }
    const Parts catalogs = test_catalogs(tree_);
    for (auto& [name, files] : roots) {
      const auto& [program, suite] = name;
      const bool whole = program == "whole_test";
      const bool of_lab = whole || program == "lab_test";
      const bool of_engine = program == "engine_test";
      const Parts started = programs_started_by(files);
      if (whole) files.insert(files.end(), catalogs.begin(), catalogs.end());
      if (std::ranges::find(started, "gauntlet-sabotage") != started.end()) {
        const Parts spoiling = sabotage_sources(tree_);
        files.insert(files.end(), spoiling.begin(), spoiling.end());
      }
      Unit unit{.name = "test " + program + " " + suite,
                .kind = of_lab ? UnitKind::timed : UnitKind::test,
                .program = program,
                .what = suite + ".*:*/" + suite + ".*",
                .also = started};
      unit.sources["own"] = tree_.closure(files, [&](const std::string& path) {
        // The test itself is a root and no implementation of anything.
        if (std::ranges::find(files, path) != files.end()) return false;
        return is_no_part(path) || (of_lab && lab_.contains(path)) ||
               (of_engine && (engine_.contains(path) || is_judged_on_cpu(path)));
      });
      if (of_lab) unit.sources["lab"] = lab_;
      if (of_engine) unit.sources["engine"] = engine_;
      add(std::move(unit));
    }
  }

  Parts programs_started_by(const Parts& files) const {
    std::set<std::string> programs;
    for (const std::string& file : files) {
      for (const std::string& program : started_programs(tree_.text(file))) {
        programs.insert(program);
      }
    }
    return {programs.begin(), programs.end()};
  }

  /// What a target's sides are, and the sabotage.
  void find_sabotage() {
    if (sabotage_tests_.empty()) return;
    Parts roots =
        tree_.matching([](const std::string& path) { return path.starts_with("tests/sabotage/"); });
    roots.insert(roots.end(), sabotage_tests_.begin(), sabotage_tests_.end());
    const SourceSet spoiling = tree_.closure(roots, [&](const std::string& path) {
      if (std::ranges::find(sabotage_tests_, path) != sabotage_tests_.end()) return false;
      return is_no_part(path) || lab_.contains(path);
    });
    std::vector<Unit> found;
    for (const Unit& target : units_.all) {
      if (target.kind != UnitKind::target) continue;
      std::string test = target.what;
      std::ranges::replace(test, ':', '_');
      Unit unit{.name = "sabotage " + target.what,
                .kind = UnitKind::sabotage,
                .program = "whole_test",
                .what = std::string("*/") + kSabotageSuite + ".*/" + test,
                .chapter = target.chapter,
                .also = programs_started_by(sabotage_tests_),
                .sources = target.sources};
      unit.sources["own"].files.insert(spoiling.files.begin(), spoiling.files.end());
      found.push_back(std::move(unit));
    }
    std::ranges::move(found, std::back_inserter(units_.all));
  }

  Expected<void> add_sanitized(const std::string& text) {
    std::map<std::string, std::string> filters;  // by the unit of the suite
    for (const std::string& line : split_lines(text)) {
      const Parts words = split_words(line);
      if (words.empty() || words[0].starts_with('#')) continue;
      if (words.size() != 2 || words[1].find('.') == std::string::npos) {
        return Error{"tests/gpu/sanitized: '" + line + "' is not '<program> <suite>.<tests>'"};
      }
      const std::string suite = words[1].substr(0, words[1].find('.'));
      const std::string of = "test " + words[0] + " " + suite;
      if (!units_.find(of)) {
        return Error{"tests/gpu/sanitized names " + words[1] + ", but " + words[0] +
                     " has no such suite"};
      }
      std::string& filter = filters[of];
      filter += (filter.empty() ? "" : ":") + words[1];
    }
    std::vector<Unit> cases;
    for (const Unit& unit : units_.all) {
      const auto filter = filters.find(unit.name);
      if (filter == filters.end()) {
        if (unit.program == "kernels_test") {
          units_.gaps.push_back(unit.name + " has no line in tests/gpu/sanitized");
        }
        continue;
      }
      for (const char* tool : {"memcheck", "racecheck", "initcheck"}) {
        Unit one = unit;
        one.name = std::string("sanitizer ") + tool + unit.name.substr(4);
        one.kind = UnitKind::sanitizer;
        one.what = filter->second;
        one.tool = tool;
        one.sources["own"].files["tests/gpu/sanitized"] = digest(filter->second);
        cases.push_back(std::move(one));
      }
    }
    for (Unit& unit : cases) units_.all.push_back(std::move(unit));
    return {};
  }

  void add_engine() {
    if (const Unit* golden = units_.find("test engine_test CudaGoldenOnGpu")) {
      Unit unit = *golden;
      unit.name = "ptx engine_test CudaGoldenOnGpu";
      unit.kind = UnitKind::ptx;
      unit.what = "CudaGoldenOnGpu.choices*";
      units_.all.push_back(std::move(unit));
    }
    const std::string speed = "src/engine/measure/speed.cc";
    if (!tree_.paths().contains(speed)) return;
    add({.name = "bench engine",
         .kind = UnitKind::bench,
         .program = "gauntlet",
         .sources = {{"own", tree_.closure({speed},
                                           [&](const std::string& path) {
                                             return is_no_part(path) || engine_.contains(path) ||
                                                    is_judged_on_cpu(path);
                                           })},
                     {"engine", engine_}}});
  }

  /// Device code that no unit runs would change unseen.
  void find_unclaimed() {
    for (const std::string& path : tree_.matching(is_side)) {
      if (path.starts_with("tests/")) continue;
      const bool claimed = std::ranges::any_of(units_.all, [&](const Unit& unit) {
        return std::ranges::any_of(unit.sources,
                                   [&](const auto& set) { return set.second.contains(path); });
      });
      if (!claimed) units_.gaps.push_back(path + " is run by no unit");
    }
  }

  const SourceTree& tree_;
  SourceSet lab_;
  SourceSet engine_;
  SourceSet flags_;
  Parts sabotage_tests_;
  Units units_;
};

}  // namespace

const char* name_of(UnitKind kind) {
  switch (kind) {
    case UnitKind::target:
      return "target";
    case UnitKind::test:
      return "test";
    case UnitKind::timed:
      return "timed";
    case UnitKind::sabotage:
      return "sabotage";
    case UnitKind::sanitizer:
      return "sanitizer";
    case UnitKind::ptx:
      return "ptx";
    case UnitKind::bench:
      return "bench";
  }
  return "";
}

std::string Unit::sources_id() const {
  std::string ids;
  for (const auto& [role, set] : sources) ids += role + " " + set.id() + "\n";
  return digest(ids);
}

const Unit* Units::find(const std::string& name) const {
  const auto found = std::ranges::find(all, name, &Unit::name);
  return found == all.end() ? nullptr : &*found;
}

std::vector<std::string> started_programs(const std::string& text) {
  static const std::regex kName("GAUNTLET_(?:([A-Z]+)_)?BINARY");
  const std::string code = cpp_code(text);
  std::set<std::string> programs;
  for (std::sregex_iterator at(code.begin(), code.end(), kName), end; at != end; ++at) {
    std::string which = (*at)[1].str();
    std::ranges::transform(which, which.begin(), [](unsigned char c) { return std::tolower(c); });
    programs.insert(which.empty() ? "gauntlet" : "gauntlet-" + which);
  }
  return {programs.begin(), programs.end()};
}

std::vector<std::string> gpu_suites(const std::string& text) {
  std::set<std::string> suites;
  const std::string code = cpp_code(text);
  for (std::size_t at = 0; (at = code.find("TEST", at)) != std::string::npos; ++at) {
    if (at > 0 && code[at - 1] != '\n') continue;
    const std::size_t open = code.find('(', at);
    const std::string macro = code.substr(at, open - at);
    if (macro != "TEST" && macro != "TEST_F" && macro != "TEST_P") continue;
    const std::string suite = trim(code.substr(open + 1, code.find(',', open) - open - 1));
    if (suite.ends_with("OnGpu")) suites.insert(suite);
  }
  return {suites.begin(), suites.end()};
}

Expected<Units> find_units(const SourceTree& tree, const std::string& sanitized) {
  return Finder(tree).find(sanitized);
}

}  // namespace gauntlet::tests::gpu
