#include "study/results/run_json.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace gauntlet::study::inline results {
namespace {

using nlohmann::json;

/// One part of a record without anything else.
json part_to_json(const char* key, const lab::RunRecord& record) {
  return std::move(lab::to_json(record)[key]);
}

Expected<lab::RunRecord> record_with(const char* key, const json& part) {
  const json nothing = lab::to_json(lab::RunRecord());
  if (part.type() != nothing[key].type()) {
    return Error{part.is_object() ? "is no list" : "is no object", ErrorKind::wrong_use};
  }
  json document = nothing;
  document[key] = part;
  auto record = lab::run_record_from_json(document);
  // What the lab says of it names no path that a reader could follow.
  if (!record)
    return Error{"has a field that is not as docs/results.md says", ErrorKind::wrong_use};
  return record;
}

}  // namespace

json ForeignJson<MachineInfo>::to(const MachineInfo& machine) {
  return part_to_json("machine", {.machine = machine});
}

Expected<MachineInfo> ForeignJson<MachineInfo>::from(const json& json) {
  auto record = record_with("machine", json);
  if (!record) return record.error();
  return std::move(record->machine);
}

json ForeignJson<BuildInfo>::to(const BuildInfo& build) {
  return part_to_json("build", {.build = build});
}

Expected<BuildInfo> ForeignJson<BuildInfo>::from(const json& json) {
  auto record = record_with("build", json);
  if (!record) return record.error();
  return std::move(record->build);
}

json ForeignJson<std::vector<lab::Ceilings>>::to(const std::vector<lab::Ceilings>& ceilings) {
  return part_to_json("ceilings", {.ceilings = ceilings});
}

Expected<std::vector<lab::Ceilings>> ForeignJson<std::vector<lab::Ceilings>>::from(
    const json& json) {
  auto record = record_with("ceilings", json);
  if (!record) return record.error();
  return std::move(record->ceilings);
}

}  // namespace gauntlet::study::inline results
