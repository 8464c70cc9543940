// gauntlet analyze: the whole study of a model on this machine, or two studies side by side.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/ceilings.h"
#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/ranks/analyze_ranks.h"
#include "cli/table.h"
#include "core/machine/nvml.h"
#include "core/text/text.h"
#include "lab/records/records.h"
#include "stats/interval_json.h"
#include "study/results/compare.h"
#include "study/study.h"
#include "study/text.h"

namespace gauntlet::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "study-";

struct AnalyzeOptions {
  EngineArguments engine;
  bool quick = false;
  lab::ProfileLevel profile = lab::ProfileLevel::minimal;
  std::string output;
  std::string artifacts = "artifacts";
  bool resume = false;
  std::string text;
  double budget_seconds = 0;
  bool no_ceilings = false;
  std::vector<std::string> compared;
  ScaleArguments scale;
  Format format = Format::text;
};

/// The folder that was asked for, the last study's when going on, or a new one.
Expected<fs::path> folder_of(const AnalyzeOptions& options, const std::string& id) {
  if (!options.output.empty()) return fs::path(options.output);
  if (!options.resume) return fs::path(options.artifacts) / (kPrefix + id);
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(options.artifacts, ignored)) {
    if (entry.path().filename().string().starts_with(kPrefix)) found.push_back(entry.path());
  }
  if (found.empty()) {
    return Error{fmt::format("there is no study below '{}' to resume", options.artifacts),
                 ErrorKind::wrong_use};
  }
  return *std::ranges::max_element(found);
}

std::string estimate_text(const stats::Interval& estimate, const char* unit) {
  return fmt::format("{:.{}f}{}", estimate.value, estimate.value < 10 ? 2 : 0, unit);
}

std::string estimate_text(const std::optional<stats::Interval>& estimate) {
  return estimate ? estimate_text(*estimate, "") : "";
}

std::vector<std::string> gain_cells(const study::LayerResult& layer) {
  if (!layer.gain) return {"", "", ""};
  const auto& [ratio, label] = layer.gain->all;
  return {estimate_text(ratio, "x"), fmt::format("{:.2f} to {:.2f}", ratio.lo, ratio.hi),
          stats::words_of(label)};
}

bool is_wrong(const study::LayerResult& layer) {
  return layer.verification && !layer.verification->verified;
}

/// Tokens per second of each batch, of what was served, or why there are none.
std::string speeds_text(const study::LayerResult& layer) {
  if (!layer.gap.empty()) return layer.gap;
  if (layer.serving) {
    return fmt::format("{:.0f} served, {:.0f} before", layer.serving->after.tok_s,
                       layer.serving->before.tok_s);
  }
  std::string speeds;
  if (!layer.engine) return speeds;
  for (const study::Figure& figure : layer.engine->figures) {
    if (figure.name == "prompt") continue;
    speeds += fmt::format("{}{} of {}", speeds.empty() ? "" : ", ", estimate_text(figure.tok_s, ""),
                          figure.batch);
  }
  return speeds;
}

void print_summary(const study::StudyResults& results, const fs::path& folder) {
  Table table({"layer", "verified", ">gain", "95% interval", "label", ">TTFT ms", ">TPOT ms",
               ">tok/s, decoding in batches"});
  for (const study::LayerResult& layer : results.layers) {
    std::vector<std::string> row = {fmt::format("{} {}", layer.index, layer.name),
                                    !layer.verification ? ""
                                    : is_wrong(layer)   ? "NO"
                                                        : "yes"};
    for (std::string& cell : gain_cells(layer)) row.push_back(std::move(cell));
    row.push_back(layer.engine ? estimate_text(layer.engine->ttft_ms) : "");
    row.push_back(layer.engine ? estimate_text(layer.engine->tpot_ms) : "");
    row.push_back(speeds_text(layer));
    table.add(std::move(row));
  }
  fmt::print("{}\n", table.text());
  for (const std::string& finding : results.findings) fmt::print("{}\n", finding);
  fmt::print("\n{}\n", (folder / "report.html").string());
}

std::string ratio_text(const stats::Interval& ratio) {
  if (!ratio.known()) return fmt::format("{:.3f}", ratio.value);
  return fmt::format("{:.3f} [{:.3f}, {:.3f}]", ratio.value, ratio.lo, ratio.hi);
}

int compare(const AnalyzeOptions& options) {
  const auto a = study::load_results(options.compared[0]);
  if (!a) return report_error(a.error());
  const auto b = study::load_results(options.compared[1]);
  if (!b) return report_error(b.error());
  const auto differences = study::compare_studies(*a, *b);
  const auto subjects = study::different_subjects(*a, *b);
  if (options.format == Format::json) {
    nlohmann::json rows = nlohmann::json::array();
    for (const auto& d : differences) {
      rows.push_back({{"figure", d.figure},
                      {"unit", d.unit},
                      {"a", stats::to_json(d.a)},
                      {"b", stats::to_json(d.b)},
                      {"ratio", stats::to_json(d.ratio)},
                      {"change", stats::name_of(d.change)}});
    }
    fmt::print("{}\n", nlohmann::json{{"differs_in", subjects}, {"figures", rows}}.dump(2));
    return 0;
  }
  for (const std::string& line : subjects) fmt::print("{}\n", line);
  Table table({"figure", ">A", ">B", "unit", ">B/A [95%]", "B is"});
  for (const auto& d : differences) {
    table.add({d.figure, fmt::format("{:.2f}", d.a.value), fmt::format("{:.2f}", d.b.value), d.unit,
               ratio_text(d.ratio), stats::name_of(d.change)});
  }
  fmt::print("\n{}", table.text());
  return 0;
}

Expected<std::vector<std::int32_t>> text_of(const AnalyzeOptions& options, const OpenModel& model) {
  if (model.tokenizer) return study::study_text(*model.tokenizer, options.text);
  return study::random_text(model.weights.config.vocab);
}

int analyze(const AnalyzeOptions& options, const Context& context) {
  if (!options.compared.empty()) return compare(options);
  if (options.engine.ranks.mesh) {
    return report_error(wrong_use(
        "analyze studies one rank's options: --ranks 1,2,4 compares meshes, and gauntlet bench "
        "--mesh measures one"));
  }
  const auto start = std::chrono::steady_clock::now();
  const std::string id = lab::make_run_id(std::chrono::system_clock::now());
  const auto folder = folder_of(options, id);
  if (!folder) return report_error(folder.error());
  if (!options.scale.ranks.empty()) {
    return analyze_ranks(options.engine, options.scale, folder->string(), options.format);
  }
  const auto backend = choose_backend(options.engine);
  if (!backend) return report_error(backend.error());
  const bool gpu = *backend == engine::Backend::cuda;
  const MachineInfo machine = read_machine(gpu);
  const auto model = open_model(options.engine);
  if (!model) return report_error(model.error());
  auto text = text_of(options, *model);
  if (!text) return report_error(text.error());
  std::optional<lab::Ceilings> ceilings;
  if (!options.no_ceilings) {
    auto known = obtain_ceilings({.backend = gpu ? lab::BackendKind::cuda : lab::BackendKind::cpu,
                                  .machine = machine,
                                  .program = context.program});
    if (!known) return report_error(known.error());
    ceilings = std::move(*known);
  }
  const std::atomic<bool>& interrupted = watch_signals({SIGINT, SIGTERM});
  const study::Depth depth = options.quick ? study::Depth::quick : study::Depth::full;
  const study::Ladder ladder = study::ladder_for(*backend);
  ProgressLine line;
  const study::StudyConfig config{
      .folder = *folder,
      .start = options.resume ? study::Start::resumed : study::Start::anew,
      .facts = {.id = fs::path(*folder).filename().string(),
                .command_line = fmt::format("gauntlet {}", fmt::join(context.arguments, " ")),
                .machine = machine,
                .build = build_info(),
                .ceilings = ceilings,
                .doctor = lab::doctor::run_doctor(lab::doctor::this_machine(options.artifacts)),
                .model = model->weights.config,
                .weights = model->tokenizer ? "files" : "random",
                .depth = depth,
                .profile = lab::name_of(options.profile),
                .ladder = ladder,
                .sizes = study::sizes_for(depth, *backend, model->weights.config,
                                          options.budget_seconds)},
      .profile = options.profile,
      .spent_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
      .progress = [&](const study::StudyProgress& p) {
        line.show(fmt::format("[{}/{}] {}  about {} left", p.done + 1, p.all, p.what,
                              format_duration_ns(1e9 * std::max(p.left_s, 1.0))));
      }};
  const auto energy =
      gpu ? EnergyMeter::of_gpu(machine.gpus.front().uuid) : EnergyMeter::of_cpu(SystemFiles());
  study::Workbench bench({.weights = model->weights,
                          .text = std::move(*text),
                          .ladder = ladder,
                          .ceilings = ceilings,
                          .cpu = machine.cpu,
                          .gpu_memory = options.engine.gpu_memory,
                          .energy = energy ? &*energy : nullptr,
                          .no_energy = energy ? "" : energy.error().message,
                          .sensors = gpu ? gpu_sensors(machine.gpus.front().uuid) : nullptr,
                          .cancel = &interrupted});
  fmt::print(stderr, "{} on {}: about {}\n", model->weights.config.name,
             gpu ? machine.gpus.front().name : machine.cpu.model,
             format_duration_ns(1e9 * study::estimated_seconds(config)));
  const auto end = study::run_study(config, bench);
  line.clear();
  if (!end) return report_error(end.error());
  const auto results = study::load_results(*folder);
  if (!results) return report_error(results.error());
  if (options.format == Format::json) {
    fmt::print("{}\n", study::to_json(*results).dump(2));
  } else {
    print_summary(*results, *folder);
  }
  if (!end->complete) {
    fmt::print(stderr, "interrupted; go on with: gauntlet {}{}\n",
               fmt::join(context.arguments, " "),
               options.resume ? "" : " --resume --output " + folder->string());
    return 130;
  }
  return std::ranges::any_of(results->layers, is_wrong) ? 1 : 0;
}

}  // namespace

void add_analyze(CLI::App& app, Context& context) {
  auto options = std::make_shared<AnalyzeOptions>();
  CLI::App* command =
      app.add_subcommand("analyze", "which optimization paid for what: layers, sweeps, report");
  add_model_options(*command, options->engine);
  add_choice<BackendChoice>(*command, "--backend", options->engine.backend,
                            {{"auto", BackendChoice::automatic},
                             {"cpu", BackendChoice::cpu},
                             {"cuda", BackendChoice::cuda}},
                            "where the model runs (default: auto, a GPU where there is one)");
  command->add_flag("--quick", options->quick, "minutes instead of a quarter of an hour");
  add_choice<lab::ProfileLevel>(
      *command, "--profile", options->profile,
      {{"none", lab::ProfileLevel::none},
       {"minimal", lab::ProfileLevel::minimal},
       {"roofline", lab::ProfileLevel::roofline},
       {"deep_dive", lab::ProfileLevel::deep_dive}},
      "minimal: where a step's time goes; roofline, deep_dive: hardware counters, too "
      "(default: minimal)");
  command
      ->add_option("--output", options->output,
                   "folder of this study (default: a new one below --artifacts-dir)")
      ->option_text("DIR");
  command->add_option("--artifacts-dir", options->artifacts, "where studies are kept")
      ->capture_default_str();
  command->add_flag("--resume", options->resume,
                    "go on with the study in --output, or with the last one");
  command
      ->add_option("--text", options->text,
                   "what is scored, routed and served (default: fiction that comes with it)")
      ->option_text("FILE");
  command
      ->add_option("--budget-seconds", options->budget_seconds,
                   "to repeat measurements for (default: quick 100, on a GPU 60; 900 otherwise)")
      ->check(CLI::Range(1.0, 86400.0))
      ->option_text("S");
  command
      ->add_option("--gpu-memory", options->engine.gpu_memory,
                   "share of the GPU's free memory to use")
      ->check(CLI::Range(0.05, 1.0))
      ->capture_default_str()
      ->option_text("PART");
  command->add_flag("--no-ceilings", options->no_ceilings,
                    "do not measure what this machine can do at most; figures lack their share");
  command->add_option("--compare", options->compared, "two studies' folders, side by side")
      ->expected(2)
      ->option_text("A B");
  command
      ->add_option("--ranks", options->scale.ranks,
                   "instead of a study: this model on so many ranks of CPUs each, in turns")
      ->delimiter(',')
      ->check(CLI::Range(1, 64))
      ->allow_extra_args(false)
      ->option_text("1,2,4");
  command->add_option("--rounds", options->scale.rounds, "of --ranks")
      ->check(CLI::Range(2, 1000))
      ->capture_default_str()
      ->needs("--ranks")
      ->option_text("N");
  add_rank_sums(*command, options->engine.ranks);
  command->get_option("--rank-sums")->needs("--ranks");
  command->add_option("--mesh", options->engine.ranks.mesh, "refused here: see --ranks")->group("");
  add_format(*command, options->format);
  command->footer(
      "Example:  gauntlet analyze --quick\n"
      "          gauntlet analyze --ranks 1,2\n"
      "          gauntlet analyze --compare artifacts/study-A artifacts/study-B");
  command->callback([options, &context] { context.exit_code = analyze(*options, context); });
}

}  // namespace gauntlet::cli
