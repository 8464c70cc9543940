// gauntlet report: writes a run's Markdown and HTML again, or prints them.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "lab/records/records.h"
#include "lab/report/markdown.h"

namespace gauntlet::cli {
namespace {

struct ReportOptions {
  std::string run = "latest";
  std::string artifacts = "artifacts";
  bool print = false;
  Format format = Format::text;
};

int report(const ReportOptions& options) {
  const auto folder = lab::RunFolder::find(options.artifacts, options.run);
  if (!folder) return report_error(folder.error());
  const auto record = folder->load();
  if (!record) return report_error(record.error());
  if (options.print) {
    fmt::print("{}", lab::report::render_markdown(*record));
    return 0;
  }
  if (const auto saved = folder->save_reports(*record); !saved) return report_error(saved.error());
  if (options.format == Format::json) {
    fmt::print("{}\n", nlohmann::json{{"run_id", record->run_id},
                                      {"html", folder->path() + "/report.html"},
                                      {"markdown", folder->path() + "/report.md"}}
                           .dump(2));
  } else {
    fmt::print("{0}/report.html\n{0}/report.md\n", folder->path());
  }
  return 0;
}

}  // namespace

void add_report(CLI::App& app, Context& context) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* command = app.add_subcommand("report", "Markdown and self-contained HTML of a run");
  command->add_option("run", options->run, "run id, folder, 'latest' or 'previous'")
      ->capture_default_str();
  command->add_option("--artifacts-dir", options->artifacts, "where runs are kept")
      ->capture_default_str();
  command->add_flag("--print", options->print, "print the Markdown instead of writing files");
  add_format(*command, options->format);
  command->footer("Example:  gauntlet report latest --print");
  command->callback([options, &context] { context.exit_code = report(*options); });
}

}  // namespace gauntlet::cli
