// gauntlet run: measures targets and writes a run with its report.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "core/text/text.h"
#include "lab/run/run_session.h"
#include "lab/targets/suites.h"

namespace gauntlet::cli {
namespace {

using nlohmann::json;

struct RunOptions {
  std::vector<std::string> targets;
  std::string suite;
  lab::BackendChoice backend = lab::BackendChoice::automatic;
  std::string profile = "none";
  int ranks = 2;
  lab::RunnerOptions::Launcher launcher = lab::RunnerOptions::Launcher::automatic;
  int iterations = 0;
  int warmup = 1;
  int repeat = 3;
  std::vector<std::string> sets;
  std::string sweep;
  double timeout_s = 120;
  double suite_timeout_s = 0;
  bool cold = false;
  bool hot = false;
  bool no_ceilings = false;
  bool accept_regressions = false;
  bool update_expectations = false;
  std::string expectations;
  std::string artifacts = "artifacts";
  std::string resume;
  double memory_gib = 0;
  Format format = Format::text;
};

Expected<std::int64_t> parse_number(const std::string& option, const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return wrong_use(fmt::format("{}: '{}' is not a whole number", option, text));
  }
  return value;
}

Expected<lab::Knobs::Overrides> parse_sets(const std::vector<std::string>& sets) {
  lab::Knobs::Overrides overrides;
  for (const std::string& set : sets) {
    const auto equals = set.find('=');
    if (equals == std::string::npos || equals == 0) {
      return wrong_use(fmt::format("--set takes key=value, not '{}'", set));
    }
    const auto value = parse_number("--set " + set, set.substr(equals + 1));
    if (!value) return value.error();
    overrides[set.substr(0, equals)] = *value;
  }
  return overrides;
}

Expected<std::optional<lab::Sweep>> parse_sweep(const std::string& text) {
  if (text.empty()) return std::optional<lab::Sweep>{};
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return wrong_use(fmt::format("--sweep takes key=a,b,c, not '{}'", text));
  }
  lab::Sweep sweep{.key = text.substr(0, equals), .values = {}};
  std::size_t begin = equals + 1;
  while (begin <= text.size()) {
    const auto comma = std::min(text.find(',', begin), text.size());
    const auto value = parse_number("--sweep " + text, text.substr(begin, comma - begin));
    if (!value) return value.error();
    sweep.values.push_back(*value);
    begin = comma + 1;
  }
  return std::optional<lab::Sweep>(sweep);
}

Expected<std::vector<lab::PlanItem>> plan_of(const RunOptions& options, const lab::Catalog& catalog,
                                             const MachineInfo& machine) {
  if (options.targets.empty() && options.suite.empty()) {
    return wrong_use("say what to run: --targets ch07:coalesced_copy or --suite quick");
  }
  std::vector<const lab::Target*> targets;
  if (!options.targets.empty()) {
    auto chosen = catalog.select(options.targets);
    if (!chosen) return chosen.error();
    targets = *chosen;
  }
  if (!options.suite.empty()) {
    auto chosen = catalog.suite(options.suite);
    if (!chosen) return chosen.error();
    for (const lab::Target* target : *chosen) {
      if (std::ranges::find(targets, target) == targets.end()) targets.push_back(target);
    }
  }
  const auto overrides = parse_sets(options.sets);
  if (!overrides) return overrides.error();
  const auto sweep = parse_sweep(options.sweep);
  if (!sweep) return sweep.error();
  return lab::make_plan(targets, options.backend, machine, *overrides, *sweep);
}

lab::SessionOptions session_options(const RunOptions& options, const Context& context,
                                    std::vector<std::string> arguments) {
  using Policy = lab::ExpectationPolicy;
  lab::SessionOptions session{
      .artifacts = options.artifacts,
      .expectations = options.expectations.empty() ? lab::expectations_folder(context.program)
                                                   : options.expectations,
      .policy = options.update_expectations  ? Policy::update
                : options.accept_regressions ? Policy::accept_regressions
                                             : Policy::check,
      .ceilings = options.no_ceilings ? lab::CeilingsPolicy::skip : lab::CeilingsPolicy::use,
      .suite_timeout_s = options.suite_timeout_s,
      .arguments = std::move(arguments)};
  session.runner.program = context.program;
  session.runner.processes = options.repeat;
  session.runner.max_processes = options.repeat * 2;
  session.runner.measure.fixed_blocks = options.iterations;
  session.runner.measure.warmup_runs = options.warmup;
  session.runner.profile = *lab::profile_level_from(options.profile);
  session.runner.ranks = options.ranks;
  session.runner.launcher = options.launcher;
  session.runner.timeout_s = options.timeout_s;
  session.runner.max_resident_bytes = static_cast<std::int64_t>(options.memory_gib * (1 << 30));
  session.runner.interrupt = &watch_signals({SIGINT, SIGTERM});
  if (options.cold) session.runner.cold = true;
  if (options.hot) session.runner.cold = false;
  return session;
}

void print_rungs(const lab::Result& r) {
  for (const lab::ComparisonResult& c : r.comparisons) {
    if (c.kind == "total") continue;
    const bool step = c.kind == "step";
    fmt::print("         {:24} {:>6.2f}x [{:.2f}, {:.2f}]  {:>9}  {}\n",
               step ? c.to : "over " + c.from, c.speedup.value, c.speedup.lo, c.speedup.hi,
               format_duration_ns(r.side(step ? c.to : c.from).ns.value),
               step ? stats::words_of(c.verdict) : "yardstick");
  }
}

void print_result(const lab::Result& r, int index, int count) {
  std::string line =
      fmt::format("[{:>{}}/{}] {:9} {:28} {:4}", index + 1, std::to_string(count).size(), count,
                  lab::name_of(r.status), r.id, r.on());
  if (!r.sweep_key.empty()) line += " " + r.sweep();
  if (r.measured()) {
    const stats::Interval& speedup = r.headline().speedup;
    line += fmt::format("  {:>6.2f}x [{:.2f}, {:.2f}]", speedup.value, speedup.lo, speedup.hi);
    line += fmt::format("  {:>9}", format_duration_ns(r.best().ns.value));
    if (r.best().ceiling_percent > 0) {
      line += fmt::format("  {:>3.0f}% of {}", r.best().ceiling_percent, r.bound_by);
    }
  }
  if (r.measured() && r.headline().gain.value > 0) {
    const stats::Interval& gain = r.headline().gain;
    line +=
        fmt::format("  {} {:.2f}x [{:.2f}, {:.2f}]", r.goal_metric, gain.value, gain.lo, gain.hi);
  }
  if (!r.reason.empty()) line += "  " + r.reason;
  fmt::print("{}\n", line);
  if (r.is_ladder()) print_rungs(r);
  if (const std::string open = lab::unwitnessed(r); !open.empty()) {
    fmt::print("         {}\n", open);
  }
  for (const std::string& note : r.notes) fmt::print("         {}\n", note);
  std::fflush(stdout);
}

json contract(const lab::RunRecord& record) {
  json results = json::array();
  for (const lab::Result& result : record.results) results.push_back(lab::to_json(result));
  return {{"run_id", record.run_id},
          {"machine", lab::to_json(record)["machine"]},
          {"results", results}};
}

int execute(lab::RunSession& session, Format format) {
  ProgressLine progress;
  const bool text = format == Format::text;
  lab::SessionEvents events;
  events.progress = [&](const lab::PlanItem& item, int index, int count,
                        const lab::RunProgress& p) {
    std::string line = fmt::format("[{}/{}] {} {}  {} {}", index + 1, count, item.target->id(),
                                   lab::name_of(item.backend), p.phase, p.side);
    if (p.process > 0) line += fmt::format("  process {}", p.process);
    if (p.ratio > 0) line += fmt::format("  {:.2f}x", p.ratio);
    progress.show(line);
  };
  events.finished = [&](const lab::Result& result, int index, int count) {
    progress.clear();
    if (text) print_result(result, index, count);
  };
  events.note = [&](const std::string& note) {
    progress.clear();
    fmt::print(text ? stdout : stderr, "{}\n", note);
  };
  const auto done = session.run(events);
  progress.clear();
  if (!done) return report_error(done.error());

  const lab::RunRecord& record = session.record();
  std::map<std::string, int> counts;
  bool failed = false;
  for (const lab::Result& result : record.results) {
    ++counts[lab::name_of(result.status)];
    failed = failed || lab::is_failure(result.status);
  }
  if (text) {
    fmt::print("\n");
    for (const auto& [status, count] : counts) fmt::print("{} {}  ", count, status);
    fmt::print("\nreport: {}/report.html\n", session.folder().path());
  } else {
    fmt::print("{}\n", contract(record).dump(2, ' ', false, json::error_handler_t::replace));
  }
  if (watch_signals({}).load()) {
    fmt::print(stderr, "gauntlet: interrupted; go on with 'gauntlet run --resume {}'\n",
               record.run_id);
    return 130;
  }
  return failed ? 1 : 0;
}

std::shared_ptr<RunOptions> declare(CLI::App& command) {
  auto options = std::make_shared<RunOptions>();
  command.add_option("--targets,-t", options->targets,
                     "ids, chapters or globs, as in ch07:transpose_padded, ch07, 'ch0*:*copy'");
  const auto suites = lab::load_suites();
  command.add_option("--suite", options->suite,
                     suites ? lab::suite_names(*suites) : suites.error().message);
  add_choice<lab::BackendChoice>(command, "--backend", options->backend,
                                 {{"auto", lab::BackendChoice::automatic},
                                  {"cpu", lab::BackendChoice::cpu},
                                  {"cuda", lab::BackendChoice::cuda},
                                  {"ranks", lab::BackendChoice::ranks},
                                  {"all", lab::BackendChoice::all}},
                                 "auto (the best present), cpu, cuda, ranks, or all");
  command
      .add_option("--ranks", options->ranks, "how many ranks run a target that is made for several")
      ->check(CLI::Range(1, 256));
  add_choice<lab::RunnerOptions::Launcher>(
      command, "--launcher", options->launcher,
      {{"auto", lab::RunnerOptions::Launcher::automatic},
       {"mpi", lab::RunnerOptions::Launcher::mpi},
       {"threads", lab::RunnerOptions::Launcher::threads}},
      "ranks as processes under mpirun, or as threads; auto: mpi where it is installed");
  command
      .add_option("--profile", options->profile,
                  "hardware counters: none, minimal, roofline or deep_dive")
      ->check(CLI::IsMember({"none", "minimal", "roofline", "deep_dive"}))
      ->option_text("LEVEL");
  command
      .add_option("--iterations", options->iterations,
                  "ABBA blocks per process (default: until the interval is tight)")
      ->check(CLI::Range(3, 100000));
  command.add_option("--warmup", options->warmup, "runs per side before timing, at least")
      ->check(CLI::Range(0, 100000));
  command
      .add_option("--repeat", options->repeat,
                  "fresh processes per target, at least; more while the interval is wide")
      ->check(CLI::Range(1, 100));
  command.add_option("--set", options->sets, "key=value: a size or setting of the targets");
  command.add_option("--sweep", options->sweep, "key=a,b,c: one result per value");
  command.add_option("--timeout", options->timeout_s, "seconds a process may take")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--suite-timeout", options->suite_timeout_s,
                  "seconds after which no further target is started")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--memory-limit", options->memory_gib,
                  "GiB a process may use (default: three quarters of the machine's)")
      ->check(CLI::PositiveNumber);
  auto* cold = command.add_flag("--cold", options->cold, "flush the caches before every sample");
  command.add_flag("--hot", options->hot, "never flush, also where a pair asks for it")
      ->excludes(cold);
  command.add_flag(
      "--no-ceilings", options->no_ceilings,
      "do not measure what this machine can do at most; results lack their share of it");
  command.add_flag("--accept-regressions", options->accept_regressions,
                   "record what fell behind its expectation as the new expectation, in place of "
                   "what any GPU recorded");
  command.add_flag("--update-expectations", options->update_expectations,
                   "record all results as this machine's expectations; what other GPUs of its "
                   "kind recorded stays, and their spread is tolerated");
  command.add_option("--expectations-dir", options->expectations,
                     "folder of the expectations (default: ./expectations)");
  command.add_option("--artifacts-dir", options->artifacts, "where runs are kept")
      ->capture_default_str();
  command.add_option("--resume", options->resume, "a run id (or 'latest'): finish that run");
  add_format(command, options->format);
  command.footer("Example:  gauntlet run --targets ch07 --backend cpu --profile minimal");
  return options;
}

int run(const RunOptions& options, const Context& context, std::vector<std::string> arguments) {
  const MachineInfo machine = read_machine(options.backend != lab::BackendChoice::cpu);
  auto plan = plan_of(options, context.catalog, machine);
  if (!plan) return report_error(plan.error());
  auto session = lab::RunSession::start(session_options(options, context, std::move(arguments)),
                                        machine, std::move(*plan));
  if (!session) return report_error(session.error());
  return execute(*session, options.format);
}

int resume(const RunOptions& options, const Context& context) {
  const auto folder = lab::RunFolder::find(options.artifacts, options.resume);
  if (!folder) return report_error(folder.error());
  auto record = folder->load();
  if (!record) return report_error(record.error());
  // The run's own arguments are parsed again, so that a resumed run does exactly what was asked
  // for.
  CLI::App app;
  CLI::App* command = app.add_subcommand("run");
  const auto original = declare(*command);
  std::vector<std::string> reversed(record->arguments.rbegin(), record->arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    return report_error({fmt::format("run {} cannot be resumed: its arguments no longer parse: {}",
                                     folder->run_id(), error.what())});
  }
  original->artifacts = options.artifacts;
  original->format = options.format;
  const MachineInfo machine = read_machine(original->backend != lab::BackendChoice::cpu);
  auto plan = plan_of(*original, context.catalog, machine);
  if (!plan) return report_error(plan.error());
  auto session = lab::RunSession::resume(session_options(*original, context, record->arguments),
                                         machine, std::move(*plan), *folder, std::move(*record));
  if (!session) return report_error(session.error());
  return execute(*session, options.format);
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("run", "measures targets and writes a report");
  const auto options = declare(*command);
  command->callback([options, &context] {
    context.exit_code = options->resume.empty() ? run(*options, context, context.arguments)
                                                : resume(*options, context);
  });
}

}  // namespace gauntlet::cli
