// Worker: the process that runs a pair's code. The parent sends one request as JSON; the worker
// answers with lines of JSON on kMessageFd. Nothing a pair does to this process can end the run.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "lab/measure/measure.h"
#include "lab/run/profile_target.h"
#include "lab/targets/catalog.h"

namespace gauntlet::lab::inline run {

struct WorkerRequest {
  enum class Task { measure, profile, ceilings, disk_ceiling };
  Task task = Task::measure;
  std::string target;
  BackendKind backend = BackendKind::cpu;
  std::vector<std::string> without = {};  // yardsticks
  Knobs::Overrides knobs;
  MeasureOptions options;
  ProfileLevel profile = ProfileLevel::none;
  std::string trace_path;  // where a deep dive writes its trace
  std::string token;       // the parent believes only messages that carry it
  /// Where rank 0 under mpirun finds the token, since anybody may read mpirun's command line; it
  /// removes the file before a side's code runs.
  std::string token_path;
  RankSetup ranks;  // of backend ranks: threads of this process, or its own place under mpirun
};

nlohmann::json to_json(const WorkerRequest& request);
WorkerRequest worker_request_from_json(const nlohmann::json& json);
nlohmann::json to_json(const Measurement& measurement);
Measurement measurement_from_json(const nlohmann::json& json);
nlohmann::json to_json(const ProfileOutcome& outcome);
ProfileOutcome profile_outcome_from_json(const nlohmann::json& json);

/// The worker's main: returns its exit code. The request is wiped once it is read: its token must
/// not be there for a side to find.
int worker_main(const Catalog& catalog, char* request_json);

/// The catalogue's name of the hidden command.
inline constexpr const char* kWorkerCommand = "__worker";

}  // namespace gauntlet::lab::inline run
