// Worker: the process that runs a pair's code. The parent sends one request as JSON; the worker
// answers with lines of JSON on kMessageFd. Nothing a pair does to this process can end the run.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "lab/author/catalog.h"
#include "lab/measure/measure.h"
#include "lab/profile/profiler.h"

namespace gauntlet::lab::inline run {

struct WorkerRequest {
  enum class Task { measure, profile, ceilings };
  Task task = Task::measure;
  std::string target;
  BackendKind backend = BackendKind::cpu;
  Knobs::Overrides knobs;
  MeasureOptions options;
  ProfileLevel profile = ProfileLevel::none;
  std::string trace_path;  // where a deep dive writes its trace
};

/// What a profiling worker found.
struct ProfileOutcome {
  std::map<std::string, double> counters[2];
  std::map<std::string, double> facts[2];
  std::string why_not;  // when nothing could be collected
  std::string trace_error;
};

nlohmann::json to_json(const WorkerRequest& request);
WorkerRequest worker_request_from_json(const nlohmann::json& json);
nlohmann::json to_json(const Measurement& measurement);
Measurement measurement_from_json(const nlohmann::json& json);
ProfileOutcome profile_outcome_from_json(const nlohmann::json& json);

/// The worker's main: returns its exit code.
int worker_main(const Catalog& catalog, const std::string& request_json);

/// The catalogue's name of the hidden command.
inline constexpr const char* kWorkerCommand = "__worker";

}  // namespace gauntlet::lab::inline run
