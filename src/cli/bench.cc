// gauntlet bench: tokens per second of the engine, beside what the machine allows.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <memory>

#include "cli/ceilings.h"
#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/speculation_options.h"
#include "cli/table.h"
#include "core/text/text.h"
#include "study/bench/engine_speed.h"

namespace gauntlet::cli {
namespace {

struct BenchOptions {
  EngineArguments engine;
  std::vector<engine::Activations> activations = {engine::Activations::f32,
                                                  engine::Activations::automatic};
  study::SpeedPlan plan;
  SpeculationArguments speculation;
  std::optional<double> accept;
  bool no_limit = false;
  Format format = Format::text;
};

void print_kernels(const study::SpeedRow& row) {
  if (row.kernels.empty()) return;
  double all = 0;
  for (const lab::KernelShare& kernel : row.kernels) all += kernel.us_per_step;
  fmt::print("\nWhere a step of {} {} x {} after {} goes, {:.0f} us traced:\n",
             engine::name_of(row.test.kind), row.test.batch, row.test.tokens, row.test.context,
             all);
  Table table({"kernel", ">launches", ">us", ">%"});
  for (const lab::KernelShare& kernel : row.kernels) {
    table.add({kernel.name, fmt::format("{:.0f}", kernel.launches_per_step),
               fmt::format("{:.1f}", kernel.us_per_step),
               fmt::format("{:.1f}", 100 * kernel.us_per_step / all)});
  }
  fmt::print("{}", table.text());
}

std::string interval_text(const stats::Interval& interval) {
  return interval.known() ? fmt::format("{:.1f} to {:.1f}", interval.lo, interval.hi)
                          : "measured once";
}

void print_text(const study::SpeedReport& report) {
  fmt::print("{}, {} of weights, {}", report.model,
             format_bytes(static_cast<double>(report.weight_bytes)), report.where);
  if (!report.limits.read_from.empty()) {
    fmt::print(", {} {:.1f} GB/s", report.limits.read_from,
               report.limits.rates.read_bytes_per_s / 1e9);
  }
  fmt::print("\n");
  Table table({"test", "activations", ">batch", ">context", ">tokens", ">tok/s", "95% interval",
               ">ms/step", ">bytes/step", ">experts/layer", ">% of limit", "bound by"});
  for (const study::SpeedRow& row : report.rows) {
    const bool limited = !row.limit.bound_by.empty();
    table.add({std::string(engine::name_of(row.test.kind)), row.activations,
               std::to_string(row.test.batch), std::to_string(row.test.context),
               std::to_string(row.test.tokens), fmt::format("{:.1f}", row.tokens_per_s.value),
               interval_text(row.tokens_per_s), fmt::format("{:.3f}", row.ms_per_step),
               format_bytes(row.bytes_per_step), fmt::format("{:.1f}", row.experts_per_layer),
               limited ? fmt::format("{:.1f}", row.percent_of_limit) : "", row.limit.bound_by});
  }
  fmt::print("{}", table.text());
  for (const study::SpeedRow& row : report.rows) print_kernels(row);
  for (const study::LoopRow& row : report.loops) {
    fmt::print(
        "closed loop over the bare service, {} x {} in, {} out, {}: {:.1f} output tok/s ({}), "
        "{:.1f}% of prefill and decode alone{}\n",
        row.loop.streams, row.loop.prompt_tokens, row.loop.output_tokens, row.activations,
        row.tokens_per_s.value, interval_text(row.tokens_per_s), row.percent_of_alone,
        row.gap_us ? fmt::format(", {:.1f} us idle between steps", *row.gap_us) : "");
  }
  for (const study::GuessedRow& row : report.guessed) {
    fmt::print(
        "{} {} x {} after {}, {}, guesses by {}: {:.1f} tok/s ({}), {:.3f} times ({:.3f} to "
        "{:.3f}) "
        "the {:.1f} without, {:.2f} tokens a step of a stream\n",
        row.test, row.streams, row.tokens, row.context, row.activations, report.guesses.describe(),
        row.tokens_per_s.value, interval_text(row.tokens_per_s), row.ratio.value, row.ratio.lo,
        row.ratio.hi, row.plain_tokens_per_s.value, row.tokens_a_step);
  }
}

/// Who guesses: as asked for, or an oracle in front of them.
Expected<study::GuessPlan> guess_plan(const OpenModel& model, const EngineArguments& arguments,
                                      const BenchOptions& options, const Capacity& capacity,
                                      engine::Executor& executor) {
  auto speculation = make_speculation(options.speculation, arguments, capacity,
                                      {.model = model, .executor = executor});
  if (!speculation) return speculation.error();
  study::GuessPlan plan{.speculation = std::move(*speculation)};
  if (!options.accept) return plan;
  const std::int64_t most = options.speculation.draft_tokens;
  plan.oracle_tokens_a_step = options.accept;
  plan.oracle =
      std::make_shared<engine::OracleDrafter>(engine::acceptance_for(*options.accept, most),
                                              executor.config().vocab, plan.speculation.drafter);
  plan.speculation = {
      .drafter = plan.oracle, .max_drafts = most, .lengths = engine::DraftLengths::fixed};
  return plan;
}

Expected<void> check_guesses(const BenchOptions& options) {
  if (auto valid = check_speculation(options.speculation); !valid) return valid;
  if (!options.accept) return {};
  const std::int64_t most = options.speculation.draft_tokens;
  if (options.speculation.speculate.size() > 1) {
    return wrong_use("--accept answers for one drafter, whose cost it takes");
  }
  if (*options.accept < 1 || *options.accept > static_cast<double>(most + 1)) {
    return wrong_use(
        fmt::format("--accept takes 1 to {} tokens a step: one, and one more for each "
                    "of --draft-tokens {}",
                    most + 1, most));
  }
  return {};
}

Expected<void> bench_one(const OpenModel& model, const EngineArguments& arguments,
                         const BenchOptions& options, const std::optional<lab::Ceilings>& ceilings,
                         const MachineInfo& machine, study::SpeedReport& report) {
  const study::SpeedPlan::Needs needs = options.plan.needs();
  const auto exported = export_layers_for(options.speculation, model);
  if (!exported) return exported.error();
  const Capacity capacity{.sequences = needs.sequences,
                          .positions = needs.positions,
                          .sequence_positions = needs.sequence_positions,
                          .export_layers = *exported};
  const auto executor = make_executor(model, arguments, capacity);
  if (!executor) return executor.error();
  if (options.plan.guesses) {
    auto guesses = guess_plan(model, arguments, options, capacity, **executor);
    if (!guesses) return guesses.error();
    report.guesses = std::move(*guesses);
  }
  const engine::Plan& plan = (*executor)->plan();
  report.weight_bytes = (*executor)->weight_bytes();
  report.threads = plan.cpus.size();
  report.where =
      plan.cuda ? plan.cuda->device
                : fmt::format("{} thread{}", plan.cpus.size(), plan.cpus.size() == 1 ? "" : "s");
  if (arguments.job != nullptr) {
    report.where += fmt::format(" on each of {} ranks, {}; weights and bytes are those of rank 0",
                                arguments.job->group.size(), arguments.job->mesh.text());
  }
  report.plans.push_back(plan.describe());
  if (ceilings) report.limits = study::limits_of(*ceilings, machine.cpu, **executor);
  ProgressLine line;
  const std::atomic<bool>& interrupted = watch_signals({SIGINT});
  return study::measure_speed(**executor, options.plan,
                              {.show = [&](const std::string& what) { line.show(what); },
                               .is_interrupted = [&] { return interrupted.load(); }},
                              report);
}

int bench(const BenchOptions& options, const EngineArguments& chosen, const Context& context) {
  if (const auto valid = check_guesses(options); !valid) return report_error(valid.error());
  study::SpeedReport report;
  const auto backend = choose_backend(chosen);
  if (!backend) return report_error(backend.error());
  const bool gpu = *backend == engine::Backend::cuda;
  if (options.plan.breakdown && !gpu) {
    return report_error(
        {"--breakdown traces a GPU, and this would run on the CPU", ErrorKind::wrong_use});
  }
  std::optional<lab::Ceilings> ceilings;
  const MachineInfo machine = read_machine(gpu);
  // Ranks share a machine, or have several: one machine's limit is none of theirs.
  if (!options.no_limit && chosen.job == nullptr) {
    auto known = obtain_ceilings({.backend = gpu ? lab::BackendKind::cuda : lab::BackendKind::cpu,
                                  .machine = machine,
                                  .program = context.program});
    if (!known) return report_error(known.error());
    ceilings = std::move(*known);
  }
  const auto model = open_model(chosen);
  if (!model) return report_error(model.error());
  report.model = model->weights.config.name;
  std::vector<std::string> measured;
  for (const engine::Activations activations : options.activations) {
    EngineArguments arguments = chosen;
    arguments.options.activations = activations;
    if (!gpu) {
      const auto plan = engine::resolve(arguments.options);
      if (!plan) return report_error(plan.error());
      if (std::ranges::find(measured, plan->activations()) != measured.end()) continue;
      measured.push_back(plan->activations());
    }
    if (const auto done = bench_one(*model, arguments, options, ceilings, machine, report); !done) {
      return watch_signals({}).load() ? 130 : report_error(done.error());
    }
    if (gpu) break;  // activations are bf16 there
  }
  if (options.format == Format::json) {
    fmt::print("{}\n", report.to_json().dump(2));
  } else {
    print_text(report);
  }
  return 0;
}

void add_list_of(CLI::App& command, const std::string& option, std::vector<std::int64_t>& values,
                 std::int64_t least, const std::string& help) {
  command.add_option(option, values, help)
      ->delimiter(',')
      ->check(CLI::Range(least, std::int64_t{1} << 20))
      ->allow_extra_args(false)
      ->option_text("N,...");
}

}  // namespace

void add_bench(CLI::App& app, Context& context) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "tokens per second of the engine");
  add_model_options(*command, options->engine);
  add_list_of(*command, "--prefill", options->plan.prefill, 1,
              "tokens of a prompt (default: 64,512)");
  add_list_of(*command, "--decode", options->plan.decode, 1,
              "tokens made one by one (default: 128)");
  add_list_of(*command, "--batch", options->plan.batch, 1, "sequences at once (default: 1)");
  add_list_of(*command, "--context", options->plan.context, 0, "tokens before (default: 0)");
  command
      ->add_option("--seconds", options->plan.seconds,
                   "to repeat each test for, forty times at most")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str()
      ->option_text("S");
  command->add_option("--repetitions", options->plan.repetitions, "of each test at least")
      ->check(CLI::Range(1, study::SpeedPlan::kMostRepetitions))
      ->capture_default_str()
      ->option_text("N");
  command->add_flag("--no-ceilings", options->no_limit,
                    "do not measure what this machine can do at most; rows lack their share of it");
  command->add_flag("--breakdown", options->plan.breakdown,
                    "GPU: where a step's time goes, kernel by kernel");
  command
      ->add_option_function<std::vector<std::string>>(
          "--closed-loop",
          [options](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) {
              auto loop = engine::ClosedLoop::parse(text);
              if (!loop) throw CLI::ValidationError("--closed-loop", loop.error().message);
              options->plan.loops.push_back(*loop);
            }
          },
          "also so many streams at a time through the scheduler, as a server has them, but "
          "without HTTP, beside prefill and decode of as many alone")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->option_text("STREAMS:PROMPT:OUTPUT:REQUESTS,...");
  add_speculation_options(*command, options->speculation);
  command
      ->add_option("--accept", options->accept,
                   "an oracle that knows the answers in place of who guesses, whose cost stays: "
                   "tokens a step, of --draft-tokens always")
      ->option_text("TOKENS");
  add_activation_list(*command, options->activations);
  add_engine_options(*command, options->engine);
  add_rank_options(*command, options->engine.ranks);
  add_format(*command, options->format);
  command->footer(
      "Example:  gauntlet bench --weights random --shape gpt-oss-20b --layers 4 --prefill 64,256");
  command->callback([options, &context] {
    options->plan.guesses = !options->speculation.speculate.empty() || options->accept;
    context.exit_code = run_on_ranks(options->engine, [&](const EngineArguments& arguments) {
      return bench(*options, arguments, context);
    });
  });
}

}  // namespace gauntlet::cli
