// gauntlet history: runs in the store, or one target's trend over them.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/table.h"
#include "core/text/text.h"
#include "lab/records/store.h"
#include "stats/interval_json.h"

namespace gauntlet::cli {
namespace {

using nlohmann::json;

struct HistoryOptions {
  std::string target;
  std::string backend;
  bool all = false;
  int limit = 20;
  std::string artifacts = "artifacts";
  Format format = Format::text;
};

std::string when(std::int64_t seconds) {
  return fmt::format("{:%Y-%m-%d %H:%M}", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

int show_runs(const lab::RunStore& store, const HistoryOptions& options) {
  const auto runs = store.runs(options.limit);
  if (!runs) return report_error(runs.error());
  if (options.format == Format::json) {
    json all = json::array();
    for (const auto& run : *runs) {
      all.push_back({{"run_id", run.run_id},
                     {"started_at", run.started_at},
                     {"machine", run.machine},
                     {"commit", run.commit},
                     {"command_line", run.command_line},
                     {"targets", run.targets},
                     {"failures", run.failures}});
    }
    fmt::print("{}\n", all.dump(2));
    return 0;
  }
  Table table({"run", "when (UTC)", "machine", "commit", ">targets", ">failed", "command"});
  for (const auto& run : *runs) {
    table.add({run.run_id, when(run.started_at), run.machine, run.commit,
               std::to_string(run.targets), std::to_string(run.failures), run.command_line});
  }
  fmt::print("{}", table.empty() ? "no runs yet; make one with 'gauntlet run'\n" : table.text());
  return 0;
}

json to_json(const lab::StoredComparison& comparison) {
  return {{"from", comparison.from},
          {"to", comparison.to},
          {"kind", comparison.kind},
          {"verdict", comparison.verdict},
          {"headline", comparison.headline},
          {"speedup", stats::to_json(comparison.speedup)},
          {"from_ns", comparison.from_ns},
          {"to_ns", comparison.to_ns},
          {"gain", comparison.gain.value > 0 ? stats::to_json(comparison.gain) : json()}};
}

json to_json(const lab::StoredResult& result) {
  json comparisons = json::array();
  for (const auto& comparison : result.comparisons) comparisons.push_back(to_json(comparison));
  return {
      {"run_id", result.run_id}, {"started_at", result.started_at},   {"commit", result.commit},
      {"id", result.id},         {"backend", result.backend},         {"on", result.on()},
      {"status", result.status}, {"goal_metric", result.goal_metric}, {"comparisons", comparisons}};
}

void add_row(Table& table, const lab::StoredResult& result,
             const lab::StoredComparison* comparison) {
  std::string compared, gain, speedup = "-", from = "-", to = "-";
  if (comparison) {
    const auto& [value, lo, hi] = comparison->speedup;
    if (comparison->kind != "pair") {
      compared = fmt::format("{} → {} ({})", comparison->from, comparison->to, comparison->kind);
    }
    speedup = fmt::format("{:.3f} [{:.3f}, {:.3f}]", value, lo, hi);
    if (const auto& of = comparison->gain; of.value > 0) {
      gain = fmt::format("{} {:.3f} [{:.3f}, {:.3f}]", result.goal_metric, of.value, of.lo, of.hi);
    }
    from = format_duration_ns(comparison->from_ns);
    to = format_duration_ns(comparison->to_ns);
  }
  table.add({result.id, result.on(), result.run_id, when(result.started_at), result.commit,
             result.status, compared, gain, speedup, from, to});
}

int show_target(const lab::RunStore& store, const HistoryOptions& options) {
  const auto results = store.history(options.target, options.backend, options.limit);
  if (!results) return report_error(results.error());
  if (options.format == Format::json) {
    json all = json::array();
    for (const auto& result : *results) all.push_back(to_json(result));
    fmt::print("{}\n", all.dump(2));
    return 0;
  }
  Table table({"target", "on", "run", "when (UTC)", "commit", "status", "compared", "gain",
               ">speedup", ">from", ">to"});
  for (const auto& result : *results) {
    if (options.all && result.headline()) {
      for (const auto& comparison : result.comparisons) add_row(table, result, &comparison);
    } else {
      add_row(table, result, result.headline());
    }
  }
  if (table.empty()) {
    fmt::print("no run holds a result of '{}'\n", options.target);
  } else {
    fmt::print("{}", table.text());
  }
  return 0;
}

int history(const HistoryOptions& options, const lab::Catalog& catalog) {
  if (!options.target.empty()) {
    if (const auto known = catalog.select({options.target}); !known) {
      return report_error(known.error());
    }
  }
  if (!std::filesystem::exists(options.artifacts + "/runs.db")) {
    return report_error({fmt::format("there are no runs below '{}'; make one with 'gauntlet run'",
                                     options.artifacts),
                         ErrorKind::wrong_use});
  }
  const auto store = lab::RunStore::open(options.artifacts);
  if (!store) return report_error(store.error());
  return options.target.empty() ? show_runs(*store, options) : show_target(*store, options);
}

}  // namespace

void add_history(CLI::App& app, Context& context) {
  auto options = std::make_shared<HistoryOptions>();
  CLI::App* command = app.add_subcommand("history", "past runs, or one target's trend");
  command->add_option("target", options->target, "an id or a glob; without one: the runs");
  command->add_option("--backend", options->backend, "cpu, cuda or ranks")
      ->check(CLI::IsMember({"cpu", "cuda", "ranks"}));
  command->add_flag("--all", options->all,
                    "each comparison of a lab, not just its last rung against its first");
  command->add_option("--limit", options->limit, "runs, or results, at most")
      ->check(CLI::Range(1, 100000));
  command->add_option("--artifacts-dir", options->artifacts, "where runs are kept")
      ->capture_default_str();
  add_format(*command, options->format);
  command->footer("Example:  gauntlet history ch07:coalesced_copy --backend cuda");
  command->callback(
      [options, &context] { context.exit_code = history(*options, context.catalog); });
}

}  // namespace gauntlet::cli
