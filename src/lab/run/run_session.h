// RunSession: one `gauntlet run` from plan to report: ceilings, targets in order, expectations,
// records, store.
#pragma once
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lab/records/expectations.h"
#include "lab/records/records.h"
#include "lab/records/run_record.h"
#include "lab/run/runner.h"

namespace gauntlet::lab::inline run {

enum class ExpectationPolicy { check, update, accept_regressions };
enum class CeilingsPolicy { use, skip };

struct SessionOptions {
  std::string artifacts = "artifacts";
  std::string expectations;  // folder
  ExpectationPolicy policy = ExpectationPolicy::check;
  CeilingsPolicy ceilings = CeilingsPolicy::use;
  double suite_timeout_s = 0;          // 0: none
  RunnerOptions runner;                // folder is set by the session
  std::vector<std::string> arguments;  // as given, so that a resumed run does the same
};

/// What a session tells while it runs.
struct SessionEvents {
  std::function<void(const PlanItem&, int index, int count, const RunProgress&)> progress;
  std::function<void(const Result&, int index, int count)> finished;
  std::function<void(const std::string&)> note;
};

class RunSession {
 public:
  /// Makes the run's folder; nothing is written when this fails.
  static Expected<RunSession> start(SessionOptions options, MachineInfo machine,
                                    std::vector<PlanItem> plan);
  /// Goes on with a run that was killed: what it finished is kept.
  static Expected<RunSession> resume(SessionOptions options, MachineInfo machine,
                                     std::vector<PlanItem> plan, RunFolder folder,
                                     RunRecord record);

  Expected<void> run(const SessionEvents& events);

  const RunRecord& record() const { return record_; }
  const RunFolder& folder() const { return folder_; }
  /// True when the run was interrupted or ran out of its time: some targets have no result.
  bool incomplete() const { return incomplete_; }

 private:
  RunSession(SessionOptions options, MachineInfo machine, std::vector<PlanItem> plan,
             RunFolder folder, RunRecord record);
  std::optional<Ceilings> ceilings_for(BackendKind backend, Runner& runner,
                                       const SessionEvents& events);
  void keep(const Ceilings& ceilings);
  void apply_expectation(Result& result, const SessionEvents& events);
  Expected<void> update_expectations();

  SessionOptions options_;
  std::vector<PlanItem> plan_;
  RunFolder folder_;
  RunRecord record_;
  std::map<std::string, Expectations> expectations_;  // by machine key
  std::set<BackendKind> without_ceilings_;  // measuring them failed; not tried again in this run
  bool incomplete_ = false;
};

}  // namespace gauntlet::lab::inline run
