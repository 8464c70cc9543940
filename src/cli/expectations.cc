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

struct Options {
  std::string folder;
  std::string machine;
  std::string run;
  std::string artifacts = "artifacts";
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

int show(const Options& options) {
  const auto keys = options.machine.empty() ? machine_keys(options.folder)
                                            : std::vector<std::string>{options.machine};
  json all = json::array();
  Table table({"machine", "target on", ">speedup", ">tolerance", ">optimized", "run", "commit",
               "recorded"});
  for (const std::string& key : keys) {
    const auto expectations = lab::Expectations::load(options.folder, key);
    if (!expectations) return report_error(expectations.error());
    for (const auto& [name, e] : expectations->entries()) {
      all.push_back({{"machine", key},
                     {"target", name},
                     {"ratio", e.ratio.median},
                     {"tolerance", e.ratio.tolerance},
                     {"run_id", e.run_id},
                     {"commit", e.commit},
                     {"recorded_at", e.recorded_at}});
      table.add({key, name, fmt::format("{:.3f}", e.ratio.median),
                 fmt::format("{:.0f}%", e.ratio.tolerance * 100),
                 e.optimized_ns ? fmt::format("{:.1f} µs", e.optimized_ns->median / 1e3) : "-",
                 e.run_id, e.commit, date(e.recorded_at)});
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

int import_run(const Options& options) {
  const auto folder = lab::RunFolder::find(options.artifacts, options.run);
  if (!folder) return report_error(folder.error());
  const auto record = folder->load();
  if (!record) return report_error(record.error());
  for (lab::BackendKind backend : {lab::BackendKind::cpu, lab::BackendKind::cuda}) {
    const std::string key =
        backend == lab::BackendKind::cpu ? record->machine.cpu_key() : record->machine.gpu_key();
    auto expectations = lab::Expectations::load(options.folder, key);
    if (!expectations) return report_error(expectations.error());
    int count = 0;
    for (const lab::Result& result : record->results) {
      if (result.backend != backend || !result.speedup) continue;
      expectations->record(result, record->run_id, record->build.commit, record->started_at);
      ++count;
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
  auto options = std::make_shared<Options>();
  options->folder = lab::expectations_folder(context.program);
  CLI::App* command = app.add_subcommand("expectations", "what is expected on which machine");
  command->add_option("--machine", options->machine, "only this machine key");
  command->add_option("--expectations-dir", options->folder, "folder of the expectations")
      ->capture_default_str();
  add_format(*command, options->format);
  command->footer("Example:  gauntlet expectations import runs/h200/20261115-022501-4f2a");
  CLI::App* import =
      command->add_subcommand("import", "record a run's results, made here or elsewhere");
  import->add_option("run", options->run, "run id, folder, or 'latest'")->required();
  import->add_option("--artifacts-dir", options->artifacts, "where runs are kept")
      ->capture_default_str();
  command->callback([options, import, &context] {
    context.exit_code = import->parsed() ? import_run(*options) : show(*options);
  });
}

}  // namespace gauntlet::cli
