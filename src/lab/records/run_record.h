// RunRecord: one run as it is kept in results.json and as the reports show it (docs/results.md is
// the schema).
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/build_info.h"
#include "core/expected.h"
#include "core/machine/machine.h"
#include "lab/ceilings/ceilings.h"
#include "lab/records/result.h"

namespace gauntlet::lab::inline records {

struct RunRecord {
  std::string run_id;
  std::int64_t started_at = 0;  // seconds since the epoch
  std::string command_line;
  std::vector<std::string> arguments;  // of the command line, so that a run can be resumed
  MachineInfo machine;
  BuildInfo build;
  std::vector<Result> results;
  std::vector<Ceilings> ceilings;  // of each backend that has them
  std::string profile;             // none, minimal, roofline, deep_dive
};

nlohmann::json to_json(const RunRecord& record);
/// The text of results.json. Bytes that are not UTF-8 (a crashed worker's last words) become
/// U+FFFD.
std::string json_text(const RunRecord& record);
/// An error says what does not fit the schema, and at which result.
Expected<RunRecord> run_record_from_json(const nlohmann::json& json);

}  // namespace gauntlet::lab::inline records
