// Runner: takes a plan of targets through worker processes, several fresh ones each, and judges
// what came back.
#pragma once
#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/machine/machine.h"
#include "lab/ceilings/ceilings.h"
#include "lab/measure/measure.h"
#include "lab/profile/profiler.h"
#include "lab/records/result.h"
#include "lab/run/judge.h"
#include "lab/run/worker.h"
#include "lab/targets/catalog.h"

namespace gauntlet::lab::inline run {

enum class BackendChoice { automatic, cpu, cuda, ranks, all };

/// One result to be made.
struct PlanItem {
  const Target* target = nullptr;
  BackendKind backend = BackendKind::cpu;
  Knobs::Overrides overrides;
  std::string sweep_key;
  std::vector<std::string> without = {};  // yardsticks that the target has no more

  /// Identifies the item within a run: "ch07:coalesced_copy cpu rows=4096".
  std::string key() const;
};

struct Sweep {
  std::string key;
  std::vector<std::int64_t> values;
};

/// Expands targets by backend and sweep and checks all knobs, so that bad input is found before
/// anything runs.
Expected<std::vector<PlanItem>> make_plan(const std::vector<const Target*>& targets,
                                          BackendChoice choice, const MachineInfo& machine,
                                          const Knobs::Overrides& overrides,
                                          const std::optional<Sweep>& sweep);

struct RunnerOptions {
  std::string program;  // this executable
  std::string folder;   // of the run: logs/ and profiles/ are below it
  int processes = 3;
  int max_processes = 6;  // more are started while the ratio's interval is wide
  MeasureOptions measure;
  std::optional<bool> cold;  // overrides the pair's own mode
  ProfileLevel profile = ProfileLevel::none;
  int ranks = 2;  // of targets that run as several
  enum class Launcher { automatic, mpi, threads } launcher = Launcher::automatic;
  double timeout_s = 120;               // per worker process
  std::int64_t max_resident_bytes = 0;  // 0: three quarters of the machine's memory
  const std::atomic<bool>* interrupt = nullptr;
};

/// How a target's ranks are started; `automatic` is MPI where mpirun and its library are there.
/// Nothing on other backends.
RankSetup ranks_of(const RunnerOptions& options, BackendKind backend);

struct RunProgress {
  std::string phase;
  std::string side;
  double ratio = 0;
  int process = 0;
};
using ProgressCallback = std::function<void(const RunProgress&)>;

class Runner {
 public:
  Runner(RunnerOptions options, MachineInfo machine);

  /// Never throws for what a pair does: that becomes a status. Ceilings that a result is above are
  /// measured once more, and the better ones stay. A disk's is measured beside what reads it.
  /// Yardsticks whose needs are not met are left out, and the result says so.
  Result run(const PlanItem& planned, std::optional<Ceilings>& ceilings,
             const ProgressCallback& progress);

  /// Ceilings from a worker process.
  Expected<Ceilings> measure_ceilings(BackendKind backend, const ProgressCallback& progress);

 private:
  struct Reply;
  Expected<std::vector<std::string>> command_for(const WorkerRequest& request) const;
  Reply ask(WorkerRequest request, const std::string& log_name, const ProgressCallback& progress,
            int process);
  Reply measure(const PlanItem& item, Evidence& evidence, const std::string& log_name,
                const ProgressCallback& progress);
  void profile(const PlanItem& item, Evidence& evidence, const std::string& log_name,
               const ProgressCallback& progress);

  /// A disk is another one a minute later: the better of both moments is held against, and kept.
  void look_at_disk(std::optional<Ceilings>& ceilings, Evidence& evidence,
                    const ProgressCallback& progress);
  Expected<Ceilings> ask_for_ceilings(WorkerRequest::Task task, BackendKind backend,
                                      const ProgressCallback& progress);

  RunnerOptions options_;
  MachineInfo machine_;
};

}  // namespace gauntlet::lab::inline run
