// A study from plan to report: cells that are not in the journal yet are measured one by one, and
// what is known is written out at the end, or when the user has had enough.
#pragma once
#include <atomic>
#include <filesystem>
#include <functional>
#include <string>

#include "study/bench/workbench.h"
#include "study/cells.h"
#include "study/results/assemble.h"

namespace gauntlet::study {

enum class Start { anew, resumed };

struct StudyProgress {
  std::size_t done = 0;
  std::size_t all = 0;
  double left_s = 0;
  std::string what;
};

struct StudyConfig {
  std::filesystem::path folder;  // made where it is missing
  Start start = Start::anew;
  StudyFacts facts;  // its cells are counted here
  lab::ProfileLevel profile = lab::ProfileLevel::minimal;
  double spent_s = 0;  // before the first cell: of the time that a quick study has
  std::function<void(const StudyProgress&)> progress;
};

/// How a study ended.
struct StudyEnd {
  bool complete = false;  // false: interrupted
  std::filesystem::path folder;
};

/// Seconds that the cells will take, as far as can be told before the first.
double estimated_seconds(const StudyConfig& config);

/// Measures what is missing and writes results.json, report.md and report.html.
Expected<StudyEnd> run_study(const StudyConfig& config, Workbench& bench);

/// The results.json of a folder. An error says what is wrong with the file, and where.
Expected<StudyResults> load_results(const std::filesystem::path& folder);
/// results.json, report.md and report.html.
Expected<void> write_reports(const std::filesystem::path& folder, const StudyResults& results);

}  // namespace gauntlet::study
