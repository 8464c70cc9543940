// gauntlet doctor: checks the machine as a tuning checklist and says what to change.
#include "lab/doctor/doctor.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/table.h"

namespace gauntlet::cli {
namespace {

using lab::doctor::Finding;
using nlohmann::json;

struct DoctorOptions {
  std::string artifacts = "artifacts";
  Format format = Format::text;
};

int print_findings(const DoctorOptions& options, const std::vector<Finding>& findings) {
  if (findings.empty()) return 0;  // of a rank that leaves the talking to another
  bool failed = false;
  json all = json::array();
  Table table({"area", "check", "state", "reason"});
  for (const Finding& f : findings) {
    failed = failed || f.level == Finding::Level::fail;
    all.push_back({{"area", f.area},
                   {"name", f.name},
                   {"level", lab::doctor::name_of(f.level)},
                   {"reason", f.reason},
                   {"fix", f.fix}});
    table.add({f.area, f.name, lab::doctor::name_of(f.level), f.reason});
    if (!f.fix.empty()) table.add({"", "", "", "→ " + f.fix});
  }
  if (options.format == Format::json) {
    fmt::print("{}\n", all.dump(2));
  } else {
    fmt::print("{}", table.text());
  }
  return failed ? 1 : 0;
}

int doctor(const DoctorOptions& options, const Context& context) {
  if (!context.checks) {
    return print_findings(options,
                          lab::doctor::run_doctor(lab::doctor::this_machine(options.artifacts)));
  }
  const auto findings = context.checks();
  return findings ? print_findings(options, *findings) : report_error(findings.error());
}

}  // namespace

void add_doctor(CLI::App& app, Context& context) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* command = app.add_subcommand("doctor", "checks this machine and says what to change");
  command->add_option("--artifacts-dir", options->artifacts, "where runs are kept")
      ->capture_default_str();
  add_format(*command, options->format);
  command->footer("Example:  gauntlet doctor --format json\nExit code 1 when a check fails.");
  command->callback([options, &context] { context.exit_code = doctor(*options, context); });
}

}  // namespace gauntlet::cli
