// gpu_units: what a GPU has to be asked, what the record says, and what a run adds to it.
// tools/gpu_check.sh runs what it plans; the test `gpu_record` is its `check`.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/build_info.h"
#include "core/os/files.h"
#include "tests/gpu/coverage.h"
#include "tests/gpu/outcome.h"

namespace gauntlet::tests::gpu {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kSomeFailed = 1;
constexpr int kCannotWork = 3;
constexpr int kSomeLeft = 4;  // none failed, but not all are covered
constexpr const char* kStampName = "gpu_stamp.json";

struct Options {
  std::string root = ".";
  std::string record = "tests/gpu/record.json";
  std::string programs;  // folder
  PlanOptions plan;
  bool all = false;
  std::string stamp;
  std::string merged;
  std::string unit;
  std::string results;
  std::string gtest;
  std::string status;
  std::string reason;
  int exit_code = 0;
  double seconds = 0;
  Occasion occasion;
};

int report(const Error& error) {
  fmt::print(stderr, "gpu_units: {}\n", error.message);
  return kCannotWork;
}

/// An error in a command ends it.
template <class T>
T get(Expected<T> expected) {
  if (!expected) throw Error(expected.error());
  return std::move(*expected);
}

void get(const Expected<void>& expected) {
  if (!expected) throw Error(expected.error());
}

Units units_of(const Options& options) {
  const fs::path root = options.root;
  if (!fs::exists(root / "src")) throw Error{options.root + " is not the root of the sources"};
  const std::string sanitized = get(read_file(root / "tests/gpu/sanitized"));
  return get(find_units(SourceTree(root), sanitized));
}

fs::path record_path(const Options& options) { return fs::path(options.root) / options.record; }

OpenFindings findings_of(const Options& options) {
  const fs::path path = fs::path(options.root) / "tests/gpu/open_findings";
  return fs::exists(path) ? parse_open_findings(get(read_file(path))) : OpenFindings();
}

Record record_at(const fs::path& path) {
  if (!fs::exists(path)) return {};
  return get(Record::from_json(get(read_file(path))));
}

void save(const Options& options, Record record, const Units& units) {
  record.prune(units);
  get(atomic_write_file(record_path(options), record.to_json()));
}

/// Which sources the programs of a folder were built from.
struct Stamp {
  std::string commit;
  std::map<std::string, std::string> sources;  // unit: id

  static Stamp load(const std::string& programs) {
    const fs::path path = fs::path(programs) / kStampName;
    if (!fs::exists(path)) {
      throw Error{path.string() + " is missing: the build writes it after the programs"};
    }
    const json whole = json::parse(get(read_file(path)));
    return {.commit = whole.at("commit"), .sources = whole.at("units")};
  }
  bool fits(const Unit& unit) const {
    const auto found = sources.find(unit.name);
    return found != sources.end() && found->second == unit.sources_id();
  }
};

/// The first program that a unit runs or starts and that is not there; empty: none.
std::string missing_program(const Options& options, const Unit& unit) {
  const fs::path folder = options.programs;
  const auto is_there = [&](const std::string& program) {
    return fs::exists(folder / program) || fs::exists(folder / "tests" / program);
  };
  if (!is_there(unit.program)) return unit.program;
  const auto missing = std::ranges::find_if_not(unit.also, is_there);
  return missing == unit.also.end() ? "" : *missing;
}

int list(const Options& options) {
  json listed = json::array();
  for (const Unit& unit : units_of(options).all) {
    json sources = json::object();
    for (const auto& [role, set] : unit.sources) sources[role] = set.files;
    listed.push_back({{"name", unit.name}, {"kind", name_of(unit.kind)}, {"sources", sources}});
  }
  fmt::print("{}\n", listed.dump(1));
  return 0;
}

int check_record(const Options& options) {
  const Units units = units_of(options);
  const Record record = record_at(record_path(options));
  const Coverage coverage = judge(units, record, findings_of(options));
  for (const std::string& line : coverage.open) fmt::print("open: {}\n", line);
  if (coverage.complete()) {
    fmt::print("the record covers {} of {} units, {} open\n",
               units.all.size() - coverage.open.size(), units.all.size(), coverage.open.size());
    return 0;
  }
  fmt::print(stderr,
             "run 'make gpu-check' on a machine with a GPU and commit {}; it does not cover:\n",
             options.record);
  for (const std::string& line : coverage.complaints()) fmt::print(stderr, "  {}\n", line);
  return coverage.any_failed() ? kSomeFailed : kSomeLeft;
}

/// A line per unit: kind, program, tool, what, name, apart by tabs.
int print_plan(const Options& options) {
  const Units units = units_of(options);
  const Record record = record_at(record_path(options));
  const Stamp stamp = Stamp::load(options.programs);
  Coverage coverage = judge(units, record, findings_of(options));
  std::erase_if(coverage.units, [&](const UnitCoverage& unit) {
    const std::string missing = missing_program(options, *unit.unit);
    if (missing.empty() && stamp.fits(*unit.unit)) return false;
    if (unit.state == UnitState::covered && !options.all) return true;
    fmt::print(stderr, "{}: {}\n", unit.unit->name,
               missing.empty() ? "built from other sources" : "there is no " + missing);
    return true;
  });
  PlanOptions how = options.plan;
  if (options.all) how.scope = PlanOptions::Scope::all;
  const Plan chosen = plan(coverage, how);
  for (const Unit* unit : chosen.now) {
    fmt::print("{}\t{}\t{}\t{}\t{}\n", name_of(unit->kind), unit->program,
               unit->tool.empty() ? "-" : unit->tool, unit->what.empty() ? "-" : unit->what,
               unit->name);
  }
  for (const Unit* unit : chosen.later) fmt::print(stderr, "{}: in a later call\n", unit->name);
  return 0;
}

int write_stamp(const Options& options) {
  json units = json::object();
  for (const Unit& unit : units_of(options).all) units[unit.name] = unit.sources_id();
  const json whole = {{"commit", build_info().commit}, {"units", units}};
  get(atomic_write_file(options.stamp, whole.dump(1) + "\n"));
  return 0;
}

std::string now() {
  const std::time_t seconds =
      std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

void print_verdict(const Unit& unit, const Verdict& verdict) {
  fmt::print("{:9} {}  {:.1f} s  {}\n", verdict.status, unit.name, verdict.seconds, verdict.reason);
}

/// Adds what a unit, or the targets of a run, came to.
int take(const Options& options) {
  const Units units = units_of(options);
  const Stamp stamp = Stamp::load(options.programs);
  Record record = record_at(record_path(options));
  Occasion occasion = options.occasion;
  occasion.when = now();
  occasion.commit = stamp.commit;
  const auto put = [&](const Unit& unit, const Verdict& verdict) {
    if (!stamp.fits(unit)) throw Error{unit.name + " was built from other sources"};
    record.put(unit, verdict, occasion);
    print_verdict(unit, verdict);
  };
  if (!options.results.empty()) {
    const TargetVerdicts verdicts = get(target_verdicts(get(read_file(options.results))));
    occasion.run = verdicts.run_id;
    for (const auto& [id, verdict] : verdicts.by_id) {
      const Unit* unit = units.find("target " + id);
      if (!unit) continue;
      const UnitRecord* known = record.find(unit->name);
      const bool taken =
          known && known->occasion.run == verdicts.run_id && known->sources == source_ids(*unit);
      if (taken) continue;
      put(*unit, verdict);
    }
  } else {
    const Unit* unit = units.find(options.unit);
    if (!unit) throw Error{"there is no unit '" + options.unit + "'"};
    if (!options.gtest.empty()) {
      const std::string text = fs::exists(options.gtest) ? get(read_file(options.gtest)) : "";
      put(*unit,
          get(test_verdict(
              {.json_text = text, .exit_code = options.exit_code, .seconds = options.seconds})));
    } else {
      put(*unit, {.status = options.status,
                  .reason = options.reason,
                  .speedup = "",
                  .seconds = options.seconds});
    }
  }
  save(options, std::move(record), units);
  return 0;
}

int merge(const Options& options) {
  const Units units = units_of(options);
  Record record = record_at(record_path(options));
  record.merge(get(Record::from_json(get(read_file(options.merged)))), units);
  save(options, std::move(record), units);
  return 0;
}

int run(int argc, char** argv) {
  CLI::App app("what a GPU has to be asked, and what it said: docs/gpu-record.md", "gpu_units");
  Options options;
  std::function<int(const Options&)> command;
  const auto add = [&](const char* name, const char* help, int (*run_it)(const Options&)) {
    CLI::App* sub = app.add_subcommand(name, help);
    sub->callback([&command, run_it] { command = run_it; });
    return sub;
  };
  app.require_subcommand(1);
  app.add_option("--root", options.root, "of the sources");
  app.add_option("--record", options.record, "below the root, or absolute")->capture_default_str();

  add("list", "all units with their sources, as JSON", list);
  add("check", "does the record cover the sources? Exit code 1: some failed, 4: some are missing",
      check_record);

  CLI::App* planned = add("plan", "what to run now: kind, program, tool, what, name", print_plan);
  planned->add_flag("--all", options.all, "also what is covered");
  planned->add_option("--only", options.plan.only, "units with this in their names");
  planned->add_option("--seconds", options.plan.seconds, "what fits into these");
  planned->add_option("--lanes", options.plan.lanes, "units at once, of those that are not timed");
  planned->add_option("--programs", options.programs, "folder of the programs")->required();

  CLI::App* stamped = add("stamp", "writes which sources the programs are of", write_stamp);
  stamped->add_option("file", options.stamp)->required();

  CLI::App* taken = add("take", "adds what a unit, or a run of targets, came to", take);
  taken->add_option("--programs", options.programs, "folder of the programs")->required();
  taken->add_option("--machine", options.occasion.machine)->required();
  taken->add_option("--run", options.occasion.run, "a name for the whole check");
  taken->add_option("--unit", options.unit);
  taken->add_option("--seconds", options.seconds, "that it took");
  taken->add_option("--gtest", options.gtest, "JSON of a test program");
  taken->add_option("--exit-code", options.exit_code, "of the test program");
  taken->add_option("--status", options.status, "of anything else")
      ->check(CLI::IsMember({"passed", "failed", "timed_out"}));
  taken->add_option("--reason", options.reason);
  taken->add_option("--results", options.results, "JSON of `gauntlet run`, instead of a unit");

  CLI::App* merged = add("merge", "takes what another record covers and this one does not", merge);
  merged->add_option("other", options.merged)->required();

  CLI11_PARSE(app, argc, argv);
  try {
    return command(options);
  } catch (const Error& error) {
    return report(error);
  } catch (const std::exception& error) {
    return report({error.what()});
  }
}

}  // namespace
}  // namespace gauntlet::tests::gpu

int main(int argc, char** argv) { return gauntlet::tests::gpu::run(argc, argv); }
