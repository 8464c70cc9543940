// What a run says as a whole: counts by status and the mean speedup, with what was left out of it
// and why.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "lab/records/run_record.h"

namespace gauntlet::lab::report {

/// Geometric means over one backend's pairs of kind comparison whose goal is speed. A swept target
/// counts once.
struct Headline {
  BackendKind backend = BackendKind::cpu;
  int num_passed = 0;
  double passed_speedup = 0;
  int num_measured = 0;  // passed, no_gain and regressed: free of the choice that "passed" makes
  double measured_speedup = 0;
};

struct Summary {
  int total = 0;
  std::map<Status, int> counts;     // every status, also those that did not occur
  std::vector<Headline> headlines;  // of each backend that has results, the GPU first
  int demonstrations = 0;           // measured, and left out of the headlines
  int labs = 0;                     // likewise: several techniques at once
  int other_goals = 0;              // likewise: judged by something else than speed
};

Summary summarize(const RunRecord& record);

/// Only a verified result has figures to show: a fast wrong answer has none.
bool has_figures(const Result& result);

/// "passed", "no gain", "timed out"
std::string words_of(Status status);
/// "37 targets: 20 passed, 6 no gain, 2 crashed, 9 skipped (a skip is not a pass)."
std::string counts_sentence(const Summary& summary);
/// "geometric mean of 14 passed comparison pairs; 1.9× over all 19 measured"
std::string headline_sentence(const Headline& headline);
/// What the headlines leave out; empty when there are none.
std::string left_out_sentence(const Summary& summary);
/// "NVIDIA H200 · AMD EPYC 9654, 2 cores"
std::string machine_line(const MachineInfo& machine);

}  // namespace gauntlet::lab::report
