#include "tests/gpu/record.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace gauntlet::tests::gpu {
namespace {

using nlohmann::json;

constexpr int kFormat = 2;

/// What of a verdict is JSON by itself, by its name.
template <class SomeVerdict>
auto json_parts(SomeVerdict& verdict) {
  return std::map{std::pair{"speedup", &verdict.speedup},
                  std::pair{"witnesses", &verdict.witnesses},
                  std::pair{"ceiling_percent", &verdict.ceiling_percent}};
}

json to_json(const UnitRecord& record) {
  json line = {{"status", record.verdict.status}, {"seconds", record.verdict.seconds},
               {"sources", record.sources},       {"machine", record.occasion.machine},
               {"when", record.occasion.when},    {"run", record.occasion.run},
               {"commit", record.occasion.commit}};
  if (!record.verdict.reason.empty()) line["reason"] = record.verdict.reason;
  if (!record.verdict.kind.empty()) line["kind"] = record.verdict.kind;
  for (const auto& [name, text] : json_parts(record.verdict)) {
    if (!text->empty()) line[name] = json::parse(*text);
  }
  return line;
}

UnitRecord unit_from(const json& line) {
  UnitRecord record{.verdict = {.status = line.at("status"),
                                .reason = line.value("reason", ""),
                                .seconds = line.at("seconds")},
                    .occasion = {.machine = line.at("machine"),
                                 .when = line.at("when"),
                                 .run = line.at("run"),
                                 .commit = line.at("commit")},
                    .sources = line.at("sources")};
  record.verdict.kind = line.value("kind", "");
  for (const auto& [name, text] : json_parts(record.verdict)) {
    if (line.contains(name)) *text = line.at(name).dump();
  }
  return record;
}

std::string lines_of(const std::map<std::string, json>& entries) {
  std::string lines;
  for (const auto& [name, value] : entries) {
    lines += (lines.empty() ? "" : ",\n") + json(name).dump() + ": " +
             value.dump(-1, ' ', false, json::error_handler_t::replace);
  }
  return lines;
}

}  // namespace

bool UnitRecord::good() const {
  return verdict.status == "passed" || verdict.status == "no_gain" || verdict.status == "skipped";
}

Expected<Record> Record::from_json(const std::string& text) {
  Record record;
  try {
    const json whole = json::parse(text);
    if (whole.value("format", 0) != kFormat) {
      return Error{"the GPU record is of another format; start anew with an empty one"};
    }
    for (const auto& [id, files] : whole.at("sources").items()) record.sets_[id].files = files;
    for (const auto& [name, line] : whole.at("units").items()) {
      record.units_[name] = unit_from(line);
      for (const auto& [role, id] : record.units_[name].sources) {
        if (!record.sets_.contains(id)) {
          return Error{"the GPU record names sources of '" + name + "' that it does not have"};
        }
      }
    }
  } catch (const json::exception& error) {
    return Error{std::string("the GPU record cannot be read: ") + error.what()};
  }
  return record;
}

std::string Record::to_json() const {
  std::map<std::string, json> sets;
  for (const auto& [id, set] : sets_) sets[id] = set.files;
  std::map<std::string, json> units;
  for (const auto& [name, record] : units_) units[name] = gpu::to_json(record);
  return "{\"format\": " + std::to_string(kFormat) + ",\n\"sources\": {\n" + lines_of(sets) +
         "\n},\n\"units\": {\n" + lines_of(units) + "\n}}\n";
}

const UnitRecord* Record::find(const std::string& unit) const {
  const auto found = units_.find(unit);
  return found == units_.end() ? nullptr : &found->second;
}

const SourceSet* Record::sources(const std::string& id) const {
  const auto found = sets_.find(id);
  return found == sets_.end() ? nullptr : &found->second;
}

void Record::put(const Unit& unit, Verdict verdict, Occasion occasion) {
  units_[unit.name] = {
      .verdict = std::move(verdict), .occasion = std::move(occasion), .sources = source_ids(unit)};
  for (const auto& [role, set] : unit.sources) sets_[set.id()] = set;
}

void Record::merge(const Record& other, const Units& units) {
  for (const Unit& unit : units.all) {
    const UnitRecord* theirs = other.find(unit.name);
    if (!theirs) continue;
    const UnitRecord* ours = find(unit.name);
    const auto rank = [&](const UnitRecord& record) {
      return std::pair(is_of(record, unit), record.occasion.when);
    };
    if (ours && rank(*ours) >= rank(*theirs)) continue;
    units_[unit.name] = *theirs;
    for (const auto& [role, id] : theirs->sources) sets_[id] = *other.sources(id);
  }
}

void Record::prune(const Units& units) {
  std::erase_if(units_, [&](const auto& entry) { return !units.find(entry.first); });
  std::erase_if(sets_, [&](const auto& entry) {
    return std::ranges::none_of(units_, [&](const auto& unit) {
      return std::ranges::any_of(unit.second.sources,
                                 [&](const auto& role) { return role.second == entry.first; });
    });
  });
}

std::map<std::string, std::string> source_ids(const Unit& unit) {
  std::map<std::string, std::string> ids;
  for (const auto& [role, set] : unit.sources) ids[role] = set.id();
  return ids;
}

bool is_of(const UnitRecord& record, const Unit& unit) {
  return record.sources.size() == unit.sources.size() &&
         std::ranges::all_of(unit.sources, [&](const auto& entry) {
           const auto& [role, set] = entry;
           const auto recorded = record.sources.find(role);
           return recorded != record.sources.end() &&
                  (unit.samples(role) || recorded->second == set.id());
         });
}

}  // namespace gauntlet::tests::gpu
