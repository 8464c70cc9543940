// gauntlet compare: two runs side by side; a difference counts where the interval of the ratio
// leaves 1.
#include "lab/records/compare.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/table.h"
#include "lab/records/records.h"
#include "stats/interval_json.h"

namespace gauntlet::cli {
namespace {

using nlohmann::json;

struct CompareOptions {
  std::string a = "previous";
  std::string b = "latest";
  std::string artifacts = "artifacts";
  Format format = Format::text;
};

Expected<lab::RunRecord> load(const CompareOptions& options, const std::string& name) {
  const auto folder = lab::RunFolder::find(options.artifacts, name);
  if (!folder) return folder.error();
  return folder->load();
}

json json_of(const stats::Interval& of) { return of.value > 0 ? stats::to_json(of) : json(); }

std::string text_of(const stats::Interval& of) {
  return of.value > 0 ? fmt::format("{:.3f} [{:.3f}, {:.3f}]", of.value, of.lo, of.hi) : "-";
}

int compare(const CompareOptions& options) {
  const auto a = load(options, options.a);
  if (!a) return report_error(a.error());
  const auto b = load(options, options.b);
  if (!b) return report_error(b.error());
  const auto differences = lab::compare_runs(*a, *b);
  std::map<std::string, int> counts;
  for (const auto& d : differences) ++counts[lab::name_of(d.verdict)];
  if (options.format == Format::json) {
    json rows = json::array();
    for (const auto& d : differences) {
      rows.push_back({{"id", d.id},
                      {"on", d.on},
                      {"sweep", d.sweep},
                      {"kind", d.kind.empty() ? json() : json(d.kind)},
                      {"metric", d.metric.empty() ? json("speed") : json(d.metric)},
                      {"from", d.from},
                      {"to", d.to},
                      {"verdict", lab::name_of(d.verdict)},
                      {"status_a", d.status_a},
                      {"status_b", d.status_b},
                      {"a", json_of(d.a)},
                      {"b", json_of(d.b)},
                      {"ratio", json_of(d.ratio)}});
    }
    fmt::print(
        "{}\n",
        json{{"a", a->run_id}, {"b", b->run_id}, {"counts", counts}, {"differences", rows}}.dump(
            2));
    return 0;
  }
  fmt::print("A {}  {}\nB {}  {}\n\n", a->run_id, a->command_line, b->run_id, b->command_line);
  if (a->machine.cpu_key() != b->machine.cpu_key() ||
      a->machine.gpu_key() != b->machine.gpu_key()) {
    fmt::print("note: the runs were made on different machines\n\n");
  }
  Table table({"target", "on", ">gain A", ">gain B", ">B/A", "verdict"});
  for (const auto& d : differences) {
    table.add({d.label(), d.on, text_of(d.a), text_of(d.b), text_of(d.ratio),
               d.status_a == d.status_b || d.status_a.empty() || d.status_b.empty()
                   ? lab::name_of(d.verdict)
                   : fmt::format("{} ({} → {})", lab::name_of(d.verdict), d.status_a, d.status_b)});
  }
  fmt::print("{}\n", table.text());
  for (const auto& [verdict, count] : counts) fmt::print("{} {}  ", count, verdict);
  fmt::print("\n");
  return 0;
}

}  // namespace

void add_compare(CLI::App& app, Context& context) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* command = app.add_subcommand("compare", "two runs side by side, by intervals");
  command->add_option("A", options->a, "run id, folder, 'latest' or 'previous'")
      ->capture_default_str();
  command->add_option("B", options->b, "likewise")->capture_default_str();
  command->add_option("--artifacts-dir", options->artifacts, "where runs are kept")
      ->capture_default_str();
  add_format(*command, options->format);
  command->footer(
      "faster, slower: the 95% interval of B/A leaves 1. same: it holds 1 and is within 5% of it. "
      "unclear:\nit is wider. A lab has a line per comparison; a target whose goal is not speed "
      "has "
      "one more, by\nits metric (better, worse).\n\n"
      "Example:  gauntlet compare previous latest");
  command->callback([options, &context] { context.exit_code = compare(*options); });
}

}  // namespace gauntlet::cli
