// The machine, the build and the ceilings in JSON: as every results file of the lab has them.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "core/expected.h"
#include "lab/records/run_record.h"
#include "study/results/json_form.h"

namespace gauntlet::study::inline results {

template <>
struct ForeignJson<MachineInfo> {
  static nlohmann::json to(const MachineInfo& machine);
  static Expected<MachineInfo> from(const nlohmann::json& json);
};
template <>
struct ForeignJson<BuildInfo> {
  static nlohmann::json to(const BuildInfo& build);
  static Expected<BuildInfo> from(const nlohmann::json& json);
};
template <>
struct ForeignJson<std::vector<lab::Ceilings>> {
  static nlohmann::json to(const std::vector<lab::Ceilings>& ceilings);
  static Expected<std::vector<lab::Ceilings>> from(const nlohmann::json& json);
};

}  // namespace gauntlet::study::inline results
