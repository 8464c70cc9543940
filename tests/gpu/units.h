// What a GPU is asked, one unit at a time, and the sources that decide each answer. The rule is in
// docs/gpu-record.md.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/expected.h"
#include "tests/gpu/source_tree.h"

namespace gauntlet::tests::gpu {

enum class UnitKind {
  target,     // a target of the catalogue, by `gauntlet run`
  test,       // a suite of a test program that measures nothing
  timed,      // a suite that measures: nothing runs beside it
  sabotage,   // a target of the catalogue with its sides spoiled: a case of a suite
  sanitizer,  // some tests of a suite under a tool of compute-sanitizer
  ptx,        // the engine's choices with kernels compiled by the driver
  bench       // the engine's speed
};
const char* name_of(UnitKind kind);

struct Unit {
  std::string name;  // "target ch07:tma_copy", "test kernels_test RouterOnGpu"
  UnitKind kind = UnitKind::test;
  std::string program;                 // "gauntlet", "kernels_test"
  std::string what;                    // a target's id, or a filter of tests
  std::string tool;                    // of compute-sanitizer
  std::string chapter;                 // of a target
  std::vector<std::string> also = {};  // other programs that it starts
  /// By role: "own", "flags", "lab", "engine".
  std::map<std::string, SourceSet> sources;

  /// A target is not measured again for every change of the lab: a sample of targets is.
  bool samples(const std::string& role) const { return is_of_target() && role == "lab"; }
  bool is_of_target() const { return kind == UnitKind::target || kind == UnitKind::sabotage; }
  /// Names the content of all sources.
  std::string sources_id() const;
};

struct Units {
  std::vector<Unit> all;  // sorted by name
  /// What keeps the list from being whole: sentences.
  std::vector<std::string> gaps;

  const Unit* find(const std::string& name) const;
};

/// `sanitized` is the text of tests/gpu/sanitized.
Expected<Units> find_units(const SourceTree& tree, const std::string& sanitized);

/// The programs that a test source starts, by the names that the build gives it for them.
std::vector<std::string> started_programs(const std::string& text);

/// The suites of a test source that need a GPU: those named *OnGpu.
std::vector<std::string> gpu_suites(const std::string& text);

}  // namespace gauntlet::tests::gpu
