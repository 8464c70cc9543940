// gauntlet bench: tokens per second of the engine, beside what the machine allows.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/ceilings.h"
#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "core/text/text.h"
#include "engine/measure/closed_loop.h"
#include "engine/measure/speed.h"
#include "lab/profile/kernel_shares.h"
#include "lab/profile/profiler.h"
#include "stats/interval_json.h"
#include "stats/median.h"
#include "study/bench/limits.h"

namespace gauntlet::cli {
namespace {

using engine::SpeedKind;
using engine::SpeedTest;
using json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr int kMostRepetitions = 40;

struct BenchOptions {
  EngineArguments engine;
  std::vector<engine::Activations> activations = {engine::Activations::f32,
                                                  engine::Activations::automatic};
  std::vector<std::int64_t> prefill = {64, 512};
  std::vector<std::int64_t> decode = {128};
  std::vector<std::int64_t> batch = {1};
  std::vector<std::int64_t> context = {0};
  double seconds = 2;
  int repetitions = 6;  // the extremes of six hold the median with 97%
  bool no_limit = false;
  bool breakdown = false;
  std::optional<engine::ClosedLoop> loop;
  Format format = Format::text;
};

struct Row {
  SpeedTest test;
  std::string activations;
  stats::Interval tokens_per_s;
  double bytes_per_token = 0;
  double ms_per_step = 0;
  double bytes_per_step = 0;
  double experts_per_layer = 0;  // that a step's tokens chose, on average
  engine::SpeedLimit limit;      // of one repetition
  double percent_of_limit = 0;
  int repetitions = 0;
  std::vector<lab::KernelShare> kernels;  // with --breakdown, on a GPU
};

struct LoopRow {
  std::string activations;
  stats::Interval tokens_per_s;
};

struct Report {
  std::string model;
  std::int64_t weight_bytes = 0;
  std::size_t threads = 0;  // 0 on a GPU
  std::string where;        // "2 threads", "NVIDIA H200"
  std::vector<std::vector<std::string>> plans;
  study::Limits limits;
  std::vector<Row> rows;
  std::vector<LoopRow> loops;
};

/// Decode after prefill, so that what is alike stands together.
std::vector<SpeedTest> tests_of(const BenchOptions& options) {
  std::vector<SpeedTest> tests;
  const auto add = [&](SpeedKind kind, const std::vector<std::int64_t>& lengths) {
    for (const std::int64_t context : options.context) {
      for (const std::int64_t batch : options.batch) {
        for (const std::int64_t tokens : lengths) {
          tests.push_back({.kind = kind, .batch = batch, .context = context, .tokens = tokens});
        }
      }
    }
  };
  add(SpeedKind::prefill, options.prefill);
  add(SpeedKind::decode, options.decode);
  return tests;
}

Capacity capacity_for(const BenchOptions& options) {
  Capacity capacity{.sequences = 1, .positions = 1};
  if (options.loop) {
    capacity = {.sequences = options.loop->streams,
                .positions = options.loop->positions(),
                .sequence_positions = options.loop->prompt_tokens + options.loop->output_tokens};
  }
  for (const SpeedTest& test : tests_of(options)) {
    capacity.sequences = std::max(capacity.sequences, 2 * test.batch);  // contexts, and their forks
    capacity.positions = std::max(capacity.positions, test.positions());
    capacity.sequence_positions = std::max(capacity.sequence_positions, test.context + test.tokens);
  }
  return capacity;
}

Expected<Row> measure(engine::SpeedMeter& meter, const SpeedTest& test, const BenchOptions& options,
                      const std::string& what, ProgressLine& line, double num_layers) {
  const auto prepared = meter.prepare(test, [&](std::int64_t done, std::int64_t all) {
    line.show(fmt::format("{}: filling contexts, {} of {} tokens", what, done, all));
  });
  if (!prepared) return prepared.error();
  line.show(fmt::format("{}: warming up", what));
  if (const auto warm = meter.measure(); !warm) return warm.error();
  const std::atomic<bool>& interrupted = watch_signals({SIGINT});
  std::vector<double> speeds, bytes, step_ms;
  engine::SpeedSample last;
  const auto tokens = static_cast<double>(test.all_tokens());
  for (const auto start = Clock::now(); std::ssize(speeds) < kMostRepetitions;) {
    const double passed = std::chrono::duration<double>(Clock::now() - start).count();
    if (std::ssize(speeds) >= options.repetitions && passed > options.seconds) break;
    if (interrupted.load()) return Error{"interrupted", ErrorKind::check_failed};
    line.show(fmt::format("{}: repetition {}", what, speeds.size() + 1));
    const auto sample = meter.measure();
    if (!sample) return sample.error();
    speeds.push_back(tokens / sample->seconds);
    bytes.push_back(sample->bytes / tokens);
    step_ms.push_back(1e3 * sample->seconds / static_cast<double>(sample->steps));
    last = *sample;
  }
  const auto steps = static_cast<double>(last.steps);
  return Row{.test = test,
             .tokens_per_s = stats::median_interval(speeds),
             .bytes_per_token = stats::median(bytes),
             .ms_per_step = stats::median(step_ms),
             .bytes_per_step = last.bytes / steps,
             .experts_per_layer = static_cast<double>(last.active_experts) / steps / num_layers,
             .repetitions = static_cast<int>(speeds.size())};
}

/// One more repetition, traced.
Expected<std::vector<lab::KernelShare>> break_down(engine::SpeedMeter& meter,
                                                   const std::string& what, ProgressLine& line) {
  line.show(fmt::format("{}: tracing", what));
  Expected<engine::SpeedSample> sample = engine::SpeedSample{};
  const auto trace = lab::trace_gpu([&] { sample = meter.measure(); });
  if (!trace) return trace.error();
  if (!sample) return sample.error();
  return lab::kernel_shares(*trace, sample->steps);
}

Expected<void> measure_all(engine::Executor& executor, const BenchOptions& options,
                           Report& report) {
  const std::string activations = executor.plan().activations();
  engine::SpeedMeter meter(executor);
  ProgressLine line;
  for (const SpeedTest& test : tests_of(options)) {
    const std::string what = fmt::format("{} {} x {} after {}, {}", engine::name_of(test.kind),
                                         test.batch, test.tokens, test.context, activations);
    auto row = measure(meter, test, options, what, line,
                       static_cast<double>(executor.config().num_layers));
    if (!row) return row.error();
    row->activations = activations;
    const auto tokens = static_cast<double>(test.all_tokens());
    row->limit =
        engine::limit_of(engine::work_of(test, executor.config()), row->bytes_per_token * tokens,
                         executor.plan(), report.limits.rates);
    row->percent_of_limit = 100 * row->limit.seconds * row->tokens_per_s.value / tokens;
    if (options.breakdown) {
      auto shares = break_down(meter, what, line);
      if (!shares) return shares.error();
      row->kernels = std::move(*shares);
    }
    report.rows.push_back(std::move(*row));
  }
  return {};
}

/// The bare service, without HTTP. Prompts are distinct, so that its prefix cache has nothing.
Expected<void> measure_loop(engine::Executor& executor, const BenchOptions& options,
                            Report& report) {
  constexpr int kRepetitions = 3;
  constexpr double kEnoughSeconds = 20;  // measured: long loops are not repeated
  const engine::ClosedLoop& loop = *options.loop;
  const std::atomic<bool>& interrupted = watch_signals({SIGINT});
  ProgressLine line;
  std::vector<double> speeds;
  double measured_s = 0;
  for (int i = 0; i < kRepetitions && measured_s < kEnoughSeconds; ++i) {
    if (interrupted.load()) return Error{"interrupted", ErrorKind::check_failed};
    const auto rate = engine::run_closed_loop(
        executor, {.max_queue = loop.requests}, loop, [&](std::int64_t done) {
          line.show(fmt::format("closed loop: {} of {} requests, repetition {}", done,
                                loop.streams + loop.requests, i + 1));
        });
    if (!rate) return rate.error();
    measured_s += rate->seconds;
    speeds.push_back(rate->tokens_per_s);
  }
  report.loops.push_back({.activations = executor.plan().activations(),
                          .tokens_per_s = stats::median_interval(speeds)});
  return {};
}

json to_json(const std::vector<lab::KernelShare>& kernels) {
  json list = json::array();
  for (const lab::KernelShare& kernel : kernels) {
    list.push_back({{"name", kernel.name},
                    {"launches_per_step", kernel.launches_per_step},
                    {"us_per_step", kernel.us_per_step}});
  }
  return list;
}

json to_json(const Row& row) {
  const bool limited = !row.limit.bound_by.empty();
  return {{"test", engine::name_of(row.test.kind)},
          {"activations", row.activations},
          {"batch", row.test.batch},
          {"context", row.test.context},
          {"tokens", row.test.tokens},
          {"tok_s", stats::to_json(row.tokens_per_s)},
          {"repetitions", row.repetitions},
          {"bytes_per_token", row.bytes_per_token},
          {"ms_per_step", row.ms_per_step},
          {"bytes_per_step", row.bytes_per_step},
          {"experts_per_layer", row.experts_per_layer},
          {"percent_of_limit", limited ? json(row.percent_of_limit) : json()},
          {"bound_by", limited ? json(row.limit.bound_by) : json()},
          {"kernels", to_json(row.kernels)}};
}

void print_json(const Report& report) {
  json rows = json::array();
  for (const Row& row : report.rows) rows.push_back(to_json(row));
  json loops = json::array();
  for (const LoopRow& row : report.loops) {
    loops.push_back(
        {{"activations", row.activations}, {"tok_s", stats::to_json(row.tokens_per_s)}});
  }
  json limits;
  if (!report.limits.read_from.empty()) {
    const engine::MachineRates& rates = report.limits.rates;
    limits = {{"read_from", report.limits.read_from},
              {"read_gb_s", rates.read_bytes_per_s / 1e9},
              {"f32_gflop_s", rates.f32_flops_per_s / 1e9},
              {"bf16_gflop_s", rates.bf16_flops_per_s / 1e9},
              {"int8_gflop_s", rates.int8_flops_per_s / 1e9}};
  }
  fmt::print("{}\n", json{{"model", report.model},
                          {"weight_bytes", report.weight_bytes},
                          {"threads", report.threads},
                          {"where", report.where},
                          {"plans", report.plans},
                          {"limits", limits},
                          {"rows", rows},
                          {"closed_loops", loops}}
                         .dump(2));
}

void print_kernels(const Row& row) {
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

void print_text(const Report& report) {
  fmt::print("{}, {} of weights, {}", report.model,
             format_bytes(static_cast<double>(report.weight_bytes)), report.where);
  if (!report.limits.read_from.empty()) {
    fmt::print(", {} {:.1f} GB/s", report.limits.read_from,
               report.limits.rates.read_bytes_per_s / 1e9);
  }
  fmt::print("\n");
  Table table({"test", "activations", ">batch", ">context", ">tokens", ">tok/s", "95% interval",
               ">ms/step", ">bytes/step", ">experts/layer", ">% of limit", "bound by"});
  for (const Row& row : report.rows) {
    const bool limited = !row.limit.bound_by.empty();
    table.add({std::string(engine::name_of(row.test.kind)), row.activations,
               std::to_string(row.test.batch), std::to_string(row.test.context),
               std::to_string(row.test.tokens), fmt::format("{:.1f}", row.tokens_per_s.value),
               interval_text(row.tokens_per_s), fmt::format("{:.3f}", row.ms_per_step),
               format_bytes(row.bytes_per_step), fmt::format("{:.1f}", row.experts_per_layer),
               limited ? fmt::format("{:.1f}", row.percent_of_limit) : "", row.limit.bound_by});
  }
  fmt::print("{}", table.text());
  for (const Row& row : report.rows) print_kernels(row);
  for (const LoopRow& row : report.loops) {
    fmt::print("closed loop over the bare service, {}: {:.1f} output tok/s ({})\n", row.activations,
               row.tokens_per_s.value, interval_text(row.tokens_per_s));
  }
}

Expected<void> bench_one(const OpenModel& model, const EngineArguments& arguments,
                         const BenchOptions& options, const std::optional<lab::Ceilings>& ceilings,
                         const MachineInfo& machine, Report& report) {
  const auto executor = make_executor(model, arguments, capacity_for(options));
  if (!executor) return executor.error();
  const engine::Plan& plan = (*executor)->plan();
  report.weight_bytes = (*executor)->weight_bytes();
  report.threads = plan.cpus.size();
  report.where =
      plan.cuda ? plan.cuda->device
                : fmt::format("{} thread{}", plan.cpus.size(), plan.cpus.size() == 1 ? "" : "s");
  report.plans.push_back(plan.describe());
  if (ceilings) report.limits = study::limits_of(*ceilings, machine.cpu, **executor);
  if (auto measured = measure_all(**executor, options, report); !measured) return measured;
  return options.loop ? measure_loop(**executor, options, report) : Expected<void>();
}

int bench(const BenchOptions& options, const Context& context) {
  Report report;
  const auto backend = choose_backend(options.engine);
  if (!backend) return report_error(backend.error());
  const bool gpu = *backend == engine::Backend::cuda;
  if (options.breakdown && !gpu) {
    return report_error(
        {"--breakdown traces a GPU, and this would run on the CPU", ErrorKind::wrong_use});
  }
  std::optional<lab::Ceilings> ceilings;
  const MachineInfo machine = read_machine(gpu);
  if (!options.no_limit) {
    auto known = obtain_ceilings({.backend = gpu ? lab::BackendKind::cuda : lab::BackendKind::cpu,
                                  .machine = machine,
                                  .program = context.program});
    if (!known) return report_error(known.error());
    ceilings = std::move(*known);
  }
  const auto model = open_model(options.engine);
  if (!model) return report_error(model.error());
  report.model = model->weights.config.name;
  std::vector<std::string> measured;
  for (const engine::Activations activations : options.activations) {
    EngineArguments arguments = options.engine;
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
  options.format == Format::json ? print_json(report) : print_text(report);
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
  add_list_of(*command, "--prefill", options->prefill, 1, "tokens of a prompt (default: 64,512)");
  add_list_of(*command, "--decode", options->decode, 1, "tokens made one by one (default: 128)");
  add_list_of(*command, "--batch", options->batch, 1, "sequences at once (default: 1)");
  add_list_of(*command, "--context", options->context, 0, "tokens before (default: 0)");
  command->add_option("--seconds", options->seconds, "to repeat each test for, forty times at most")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str()
      ->option_text("S");
  command->add_option("--repetitions", options->repetitions, "of each test at least")
      ->check(CLI::Range(1, kMostRepetitions))
      ->capture_default_str()
      ->option_text("N");
  command->add_flag("--no-ceilings", options->no_limit,
                    "do not measure what this machine can do at most; rows lack their share of it");
  command->add_flag("--breakdown", options->breakdown,
                    "GPU: where a step's time goes, kernel by kernel");
  command
      ->add_option_function<std::string>(
          "--closed-loop",
          [options](const std::string& text) {
            auto loop = engine::ClosedLoop::parse(text);
            if (!loop) throw CLI::ValidationError("--closed-loop", loop.error().message);
            options->loop = *loop;
          },
          "also so many streams at a time through the scheduler, as a server has them, but "
          "without HTTP")
      ->option_text("STREAMS:PROMPT:OUTPUT:REQUESTS");
  add_activation_list(*command, options->activations);
  add_engine_options(*command, options->engine);
  add_format(*command, options->format);
  command->footer(
      "Example:  gauntlet bench --weights random --shape gpt-oss-20b --layers 4 --prefill 64,256");
  command->callback([options, &context] { context.exit_code = bench(*options, context); });
}

}  // namespace gauntlet::cli
