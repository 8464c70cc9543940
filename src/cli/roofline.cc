// gauntlet roofline: the measured ceilings of this machine, and where the targets of a run sit
// under them.
#include <fmt/format.h>

#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/ceilings.h"
#include "cli/command.h"
#include "cli/table.h"
#include "core/text/text.h"
#include "lab/records/records.h"

namespace gauntlet::cli {
namespace {

using nlohmann::json;

struct RooflineOptions {
  std::string backend = "auto";
  bool remeasure = false;
  bool methods = false;
  std::string run;
  std::string artifacts = "artifacts";
  Format format = Format::text;
};

void print_ceilings(const lab::Ceilings& ceilings, bool methods) {
  const auto now = static_cast<std::int64_t>(std::time(nullptr));
  fmt::print("{} ({}), measured {}\n", ceilings.machine_key, lab::name_of(ceilings.backend),
             format_age(now - ceilings.measured_at));
  Table table({"ceiling", ">value", "unit", "best method"});
  for (const auto& [name, ceiling] : ceilings.values) {
    table.add({name, fmt::format("{:.1f}", ceiling.value), ceiling.unit, ceiling.method});
    if (!methods) continue;
    for (const auto& attempt : ceiling.tries) {
      table.add({"", fmt::format("{:.1f}", attempt.value), "", "  " + attempt.method});
    }
  }
  fmt::print("{}\n", table.text());
}

int print_run(const RooflineOptions& options) {
  const auto folder = lab::RunFolder::find(options.artifacts, options.run);
  if (!folder) return report_error(folder.error());
  const auto record = folder->load();
  if (!record) return report_error(record.error());
  Table table({"target", "on", ">GB/s", ">GFLOP/s", ">FLOP/byte", ">% of ceiling", "bound by"});
  for (const lab::Result& r : record->results) {
    if (!r.measured()) continue;
    const lab::SideResult& best = r.best();
    table.add({r.id, lab::name_of(r.backend), fmt::format("{:.1f}", best.gb_per_s),
               fmt::format("{:.1f}", best.gflop_per_s), fmt::format("{:.2f}", r.intensity),
               fmt::format("{:.1f}", best.ceiling_percent), r.bound_by});
  }
  fmt::print("optimized sides and last rungs of run {}\n{}", record->run_id, table.text());
  return 0;
}

int roofline(const RooflineOptions& options, const Context& context) {
  const MachineInfo machine = read_machine(options.backend != "cpu");
  std::vector<lab::BackendKind> backends;
  if (options.backend != "cuda") backends.push_back(lab::BackendKind::cpu);
  if (options.backend == "cuda" || (options.backend != "cpu" && !machine.gpus.empty())) {
    backends.push_back(lab::BackendKind::cuda);
  }
  if (options.backend == "cuda" && machine.gpus.empty()) {
    return report_error({machine.no_gpu_reason, ErrorKind::environment});
  }
  json all = json::array();
  for (lab::BackendKind backend : backends) {
    const auto ceilings = obtain_ceilings({.backend = backend,
                                           .machine = machine,
                                           .remeasure = options.remeasure,
                                           .program = context.program});
    if (!ceilings) return report_error(ceilings.error());
    if (options.format == Format::json) {
      all.push_back(lab::to_json(*ceilings));
    } else {
      print_ceilings(*ceilings, options.methods);
    }
  }
  if (options.format == Format::json) fmt::print("{}\n", all.dump(2));
  return options.run.empty() ? 0 : print_run(options);
}

}  // namespace

void add_roofline(CLI::App& app, Context& context) {
  auto options = std::make_shared<RooflineOptions>();
  CLI::App* command = app.add_subcommand("roofline", "measured ceilings of this machine");
  command->add_option("--backend", options->backend, "auto, cpu or cuda")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->option_text("auto|cpu|cuda");
  command->add_flag("--remeasure", options->remeasure, "measure again, whatever is kept");
  command->add_flag("--methods", options->methods, "show what every method reached");
  command->add_option("--run", options->run, "also place the targets of this run ('latest')");
  command->add_option("--artifacts-dir", options->artifacts, "where runs are kept")
      ->capture_default_str();
  add_format(*command, options->format);
  command->footer("Example:  gauntlet roofline --methods --run latest");
  command->callback([options, &context] { context.exit_code = roofline(*options, context); });
}

}  // namespace gauntlet::cli
