// gauntlet expectations: what is expected where, and importing it from a run made elsewhere.
#include "lab/records/expectations.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/table.h"
#include "lab/records/records.h"

namespace gauntlet::cli {
namespace {

using nlohmann::json;

struct ExpectationsOptions {
  std::string folder;
  std::string machine;
  std::string run;
  std::string artifacts = "artifacts";
  bool replace = false;
  Format format = Format::text;
};

std::vector<std::string> machine_keys(const std::string& folder) {
  std::vector<std::string> keys;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".json") keys.push_back(entry.path().stem());
  }
  std::ranges::sort(keys);
  return keys;
}

std::string date(std::int64_t seconds) {
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

json to_json(const lab::ExpectedValue& expected) {
  return {{"value", expected.value},
          {"tolerance", expected.tolerance},
          {"between_boards", expected.between}};
}

json to_json(const std::string& machine, const std::string& target,
             const lab::Expectation& expectation) {
  json ratios = json::array(), times = json::object(), boards = json::array();
  for (const auto& [from, to, ignored, has_gain] : expectation.newest().ratios) {
    json ratio = to_json(*expectation.ratio(from, to));
    if (has_gain) ratio["gain"] = to_json(*expectation.gain(from, to));
    ratio["from"] = from;
    ratio["to"] = to;
    ratios.push_back(std::move(ratio));
  }
  for (const auto& [side, ignored] : expectation.newest().times_ns) {
    times[side] = to_json(*expectation.time_ns(side));
  }
  for (const auto& board : expectation.boards) {
    boards.push_back({{"board", board.provenance.board},
                      {"status", board.status},
                      {"run_id", board.provenance.run_id},
                      {"commit", board.provenance.commit},
                      {"recorded_at", board.provenance.recorded_at}});
  }
  return {{"machine", machine},
          {"target", target},
          {"ratios", ratios},
          {"times_ns", times},
          {"boards", boards}};
}

std::string tolerance_text(const lab::ExpectedValue& expected) {
  const std::string text = fmt::format("{:.0f}%", expected.tolerance * 100);
  return expected.between > 0
             ? fmt::format("{} ({:.0f}% between boards)", text, expected.between * 100)
             : text;
}

void add_rows(Table& table, const std::string& machine, const std::string& target,
              const lab::Expectation& expectation) {
  const lab::BoardExpectation& newest = expectation.newest();
  for (const auto& [from, to, ignored, has_gain] : newest.ratios) {
    const lab::ExpectedValue ratio = *expectation.ratio(from, to);
    const auto gain = expectation.gain(from, to);
    const auto time = expectation.time_ns(to);
    table.add({machine, target, newest.ratios.size() > 1 ? from + " → " + to : "",
               gain ? fmt::format("{:.3f} ({})", gain->value, tolerance_text(*gain)) : "",
               fmt::format("{:.3f}", ratio.value), tolerance_text(ratio),
               time ? fmt::format("{:.1f} µs", time->value / 1e3) : "-",
               std::to_string(expectation.boards.size()), newest.provenance.run_id,
               newest.provenance.commit, date(newest.provenance.recorded_at)});
  }
}

int show(const ExpectationsOptions& options) {
  const auto keys = options.machine.empty() ? machine_keys(options.folder)
                                            : std::vector<std::string>{options.machine};
  json all = json::array();
  Table table({"machine", "target on", "compared", ">gain", ">speedup", ">tolerance", ">time",
               ">boards", "newest run", "commit", "recorded"});
  for (const std::string& key : keys) {
    const auto expectations = lab::Expectations::load(options.folder, key);
    if (!expectations) return report_error(expectations.error());
    for (const auto& [target, expectation] : expectations->entries()) {
      all.push_back(to_json(key, target, expectation));
      add_rows(table, key, target, expectation);
    }
  }
  if (options.format == Format::json) {
    fmt::print("{}\n", all.dump(2));
  } else if (table.empty()) {
    fmt::print("no expectations in '{}'; record some with 'gauntlet run --update-expectations'\n",
               options.folder);
  } else {
    fmt::print("{}", table.text());
  }
  return 0;
}

int import_run(const ExpectationsOptions& options) {
  using OtherBoards = lab::Expectations::OtherBoards;
  const auto folder = lab::RunFolder::find(options.artifacts, options.run);
  if (!folder) return report_error(folder.error());
  const auto record = folder->load();
  if (!record) return report_error(record.error());
  for (const lab::BackendKind backend : lab::kBackends) {
    const std::string key = lab::machine_key_of(record->machine, backend);
    const lab::Provenance provenance = lab::provenance_of(*record, backend);
    auto expectations = lab::Expectations::load(options.folder, key);
    if (!expectations) return report_error(expectations.error());
    int count = 0;
    for (const lab::Result& result : record->results) {
      if (result.backend != backend) continue;
      count += expectations->record(result, provenance,
                                    options.replace ? OtherBoards::drop : OtherBoards::keep);
    }
    if (count == 0) continue;
    if (auto saved = expectations->save(options.folder); !saved) return report_error(saved.error());
    fmt::print("{} expectations of {} recorded in {}/{}.json from run {}\n", count, key,
               options.folder, key, record->run_id);
  }
  return 0;
}

}  // namespace

void add_expectations(CLI::App& app, Context& context) {
  auto options = std::make_shared<ExpectationsOptions>();
  options->folder = lab::expectations_folder(context.program);
  CLI::App* command = app.add_subcommand("expectations", "what is expected on which machine");
  command->add_option("--machine", options->machine, "only this machine key");
  command->add_option("--expectations-dir", options->folder, "folder of the expectations")
      ->capture_default_str();
  add_format(*command, options->format);
  command->footer(
      "Each GPU's figures are kept by its UUID. What is expected is the middle of them; a run may "
      "leave it\nby the noise of a run (three half-widths of its interval, 3% to 20%) and by half "
      "the range between\nthe GPUs that recorded it.\n\n"
      "Example:  gauntlet expectations import runs/h200/20261115-022501-4f2a");
  CLI::App* import =
      command->add_subcommand("import", "record a run's results, made here or elsewhere");
  import->add_option("run", options->run, "run id, folder, or 'latest'")->required();
  import->add_flag("--replace", options->replace,
                   "drop what other GPUs of this kind recorded: the program changed, not the GPU");
  import->add_option("--artifacts-dir", options->artifacts, "where runs are kept")
      ->capture_default_str();
  command->callback([options, import, &context] {
    context.exit_code = import->parsed() ? import_run(*options) : show(*options);
  });
}

}  // namespace gauntlet::cli
