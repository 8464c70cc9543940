#include "cli/engine_options.h"

#include <fmt/format.h>

#include <random>

#include "cli/progress.h"
#include "engine/steps/cpu_executor.h"
#include "engine/steps/cuda_executor.h"
#include "model/tokens/load_tokenizer.h"

namespace gauntlet::cli {
namespace {

using engine::Activations;
using engine::AttentionKind;
using engine::ExpertWeightsKind;
using engine::Fusion;
using engine::HeadKind;
using engine::KvType;
using engine::Stages;
using kernels::cpu::SimdLevel;

constexpr const char* kDefaultModel = "gauntlet-tiny";
constexpr std::uint64_t kWeightSeed = 1;
constexpr std::int64_t kCpuChunk = 512;
constexpr std::int64_t kGpuChunk = 8192;

std::vector<std::pair<std::string, Activations>> activation_choices() {
  std::vector<std::pair<std::string, Activations>> choices;
  for (const Activations one : {Activations::f32, Activations::int8, Activations::automatic}) {
    choices.emplace_back(name_of(one), one);
  }
  return choices;
}

Expected<OpenModel> open_random(const EngineArguments& arguments) {
  if (arguments.model) {
    return Error{"--weights random takes a --shape, not a --model", ErrorKind::wrong_use};
  }
  const auto config =
      model::random_shape(arguments.shape.value_or(kDefaultShape), arguments.layers);
  if (!config) return config.error();
  return OpenModel{.weights = model::random_model(*config, kWeightSeed)};
}

}  // namespace

void add_model_options(CLI::App& command, EngineArguments& arguments) {
  command
      .add_option("--model", arguments.model,
                  "folder, .gguf file or name (default: gauntlet-tiny, which is built in)")
      ->option_text("DIR|FILE|NAME");
  add_choice<WeightSource>(command, "--weights", arguments.weights,
                           {{"files", WeightSource::files}, {"random", WeightSource::random}},
                           "the model's own, or random ones of a --shape");
  command
      .add_option("--shape", arguments.shape,
                  "gpt-oss-20b, gpt-oss-120b or a config.json, for random weights")
      ->option_text("NAME|FILE");
  command.add_option("--layers", arguments.layers, "of random weights (default: the shape's)")
      ->check(CLI::Range(1, 1024))
      ->option_text("N");
}

namespace {

template <class Switch>
std::vector<std::pair<std::string, Switch>> on_and_off() {
  return {{"on", Switch::on}, {"off", Switch::off}};
}

void add_cuda_options(CLI::App& command, EngineArguments& arguments) {
  engine::CudaOptions& options = arguments.options.cuda;
  using engine::HostMemory, engine::KvLayout, engine::ProductUnit, engine::WeightLayout;
  add_choice<ProductUnit>(
      command, "--products", options.products,
      {{"tensor-cores", ProductUnit::tensor_cores}, {"cuda-cores", ProductUnit::cuda_cores}},
      "GPU: what multiplies; cuda-cores takes --weight-layout rows (default: tensor-cores)");
  add_choice<WeightLayout>(
      command, "--weight-layout", options.weight_layout,
      {{"fragments", WeightLayout::fragments}, {"rows", WeightLayout::rows}},
      "GPU: weights shuffled for wide loads, or row by row, which takes --fusion op-by-op and "
      "--pipelines plain (default: fragments)");
  add_choice<KvLayout>(command, "--kv-layout", options.kv_layout,
                       {{"paged", KvLayout::paged}, {"contiguous", KvLayout::contiguous}},
                       "GPU: pages as sequences grow, or each one's greatest length reserved "
                       "(default: paged)");
  add_choice<HostMemory>(command, "--host-memory", options.host_memory,
                         {{"pinned", HostMemory::pinned}, {"pageable", HostMemory::pageable}},
                         "GPU: memory of a step's inputs and tokens (default: pinned)");
  add_choice<engine::Graphs>(command, "--graphs", options.graphs, on_and_off<engine::Graphs>(),
                             "GPU: decode steps captured once and replayed (default: on)");
  add_choice<engine::DependentLaunch>(
      command, "--dependent-launch", options.dependent_launch,
      on_and_off<engine::DependentLaunch>(),
      "GPU: kernels start while the one in front ends (default: on)");
  add_choice<engine::Pipelines>(
      command, "--pipelines", options.pipelines,
      {{"bulk", engine::Pipelines::bulk}, {"plain", engine::Pipelines::plain}},
      "GPU: weights of many tokens by bulk copies, or by plain loads (default: bulk)");
  command.add_flag_callback(
      "--deterministic", [&options] { options.determinism = engine::Determinism::per_request; },
      "GPU: a request's logits do not depend on its batch mates");
  command.add_option("--gpu-memory", arguments.gpu_memory, "share of the GPU's free memory to use")
      ->check(CLI::Range(0.05, 1.0))
      ->capture_default_str()
      ->option_text("PART");
}

}  // namespace

void add_engine_options(CLI::App& command, EngineArguments& arguments) {
  engine::EngineOptions& options = arguments.options;
  add_choice<BackendChoice>(command, "--backend", arguments.backend,
                            {{"auto", BackendChoice::automatic},
                             {"cpu", BackendChoice::cpu},
                             {"cuda", BackendChoice::cuda}},
                            "where the model runs (default: auto, a GPU where there is one)");
  command.add_option("--threads", options.threads, "pinned, 1 to 1024 (default: one per CPU)")
      ->check(CLI::Range(1, 1024))
      ->option_text("N");
  using Level = std::optional<SimdLevel>;
  std::vector<std::pair<std::string, Level>> levels;
  for (const SimdLevel level : kernels::cpu::kSimdLevels) {
    levels.emplace_back(kernels::cpu::name_of(level), level);
  }
  add_choice<Level>(command, "--simd", options.simd, levels,
                    "instructions (default: the best here)");
  using Kv = std::optional<KvType>;
  add_choice<Kv>(
      command, "--kv-dtype", options.kv,
      {{"f32", KvType::f32}, {"bf16", KvType::bf16}, {"fp8", KvType::fp8}},
      "keys and values in the cache: f32 or bf16 on CPUs, bf16 or fp8 on a GPU (default: "
      "the first; bf16 with --activations auto)");
  add_choice<AttentionKind>(command, "--attention", options.attention,
                            {{"flash", AttentionKind::flash}, {"naive", AttentionKind::naive}},
                            "in one blocked pass, or score by score (default: flash)");
  add_choice<ExpertWeightsKind>(
      command, "--experts", options.experts,
      {{"mxfp4", ExpertWeightsKind::mxfp4}, {"dequantised", ExpertWeightsKind::dequantised}},
      "multiplied as they are, or expanded in memory first (default: mxfp4)");
  add_choice<HeadKind>(command, "--head", options.head,
                       {{"screened", HeadKind::screened}, {"full", HeadKind::full}},
                       "greedy tokens on CPUs: from the few exact logits that an 8-bit copy of "
                       "the output head leaves in question, or from all (default: screened)");
  add_choice<Fusion>(command, "--fusion", options.fusion,
                     {{"fused", Fusion::fused}, {"op-by-op", Fusion::op_by_op}},
                     "operations joined to few passes or kernels, or one each (default: fused)");
  add_choice<Stages>(command, "--stages", options.stages,
                     {{"overlapped", Stages::overlapped}, {"apart", Stages::apart}},
                     "on CPUs: threads go on as soon as what they need is there, or wait for each "
                     "other after every stage (default: overlapped)");
  command
      .add_option("--chunk", arguments.chunk,
                  "tokens of one step (default: 512 on CPUs, 8192 on a GPU)")
      ->check(CLI::Range(1, 16384))
      ->option_text("N");
  add_cuda_options(command, arguments);
}

void add_activations(CLI::App& command, EngineArguments& arguments, Activations otherwise) {
  arguments.options.activations = otherwise;
  add_choice<Activations>(
      command, "--activations", arguments.options.activations, activation_choices(),
      fmt::format("exact, rounded per 32 values, or whichever is faster (default: {})",
                  name_of(otherwise)));
}

void add_activation_list(CLI::App& command, std::vector<Activations>& list) {
  const auto choose = [&list](const std::vector<std::string>& words) {
    list.clear();
    for (const std::string& word : words) {
      std::vector<std::string> names;
      const std::size_t before = list.size();
      for (const auto& [name, meaning] : activation_choices()) {
        names.push_back(name);
        if (name == word) list.push_back(meaning);
      }
      if (list.size() == before) refuse_choice("--activations", word, names);
    }
  };
  command
      .add_option_function<std::vector<std::string>>(
          "--activations", choose,
          "exact, rounded per 32 values, or whichever is faster (default: f32,auto)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->option_text("f32|int8|auto,...");
}

engine::SamplingParams SamplingArguments::params() const {
  engine::SamplingParams params = given;
  params.seed = seed ? *seed : std::random_device()();
  return params;
}

void add_sampling_options(CLI::App& command, SamplingArguments& arguments) {
  engine::SamplingParams& params = arguments.given;
  const auto add = [&](const char* option, auto& value, const char* help, const char* text) {
    command.add_option(option, value, help)->capture_default_str()->option_text(text);
  };
  add("--temperature", params.temperature, "0: always the likeliest token, the lowest id on ties",
      "T");
  add("--top-k", params.top_k, "of the K likeliest tokens (0: all)", "K");
  add("--top-p", params.top_p, "of the likeliest tokens that hold this probability", "P");
  add("--min-p", params.min_p, "of tokens at least this likely, relative to the likeliest", "P");
  command.add_option("--seed", arguments.seed, "makes sampling repeatable")->option_text("N");
}

Expected<OpenModel> open_model(const EngineArguments& arguments) {
  if (arguments.weights == WeightSource::random) return open_random(arguments);
  if (arguments.shape || arguments.layers > 0) {
    return Error{"--shape and --layers are for --weights random; a model's files have their own",
                 ErrorKind::wrong_use};
  }
  const auto files = model::open_model(arguments.model.value_or(kDefaultModel));
  if (!files) return files.error();
  auto weights = model::load_model(*files);
  if (!weights) return weights.error();
  auto tokenizer = model::load_tokenizer(*files);
  if (!tokenizer) return tokenizer.error();
  return OpenModel{.weights = std::move(*weights), .tokenizer = std::move(*tokenizer)};
}

Expected<engine::Backend> choose_backend(const EngineArguments& arguments) {
  if (arguments.backend == BackendChoice::cpu) return engine::Backend::cpu;
  const std::string reason = engine::no_cuda_executor_reason();
  if (reason.empty()) return engine::Backend::cuda;
  if (arguments.backend == BackendChoice::automatic) return engine::Backend::cpu;
  return Error{"--backend cuda: " + reason};
}

Expected<std::unique_ptr<engine::Executor>> make_executor(const OpenModel& model,
                                                          const EngineArguments& arguments,
                                                          const Capacity& capacity) {
  const auto backend = choose_backend(arguments);
  if (!backend) return backend.error();
  ProgressLine line;
  const auto progress = [&](double done) {
    line.show(fmt::format("loading {}  {:.0f}%", model.weights.config.name, done * 100));
  };
  const std::int64_t positions =
      std::min(capacity.positions, model.weights.config.max_positions * capacity.sequences);
  if (*backend == engine::Backend::cuda) {
    auto made = engine::make_cuda_executor(model.weights,
                                           {.options = arguments.options,
                                            .max_sequences = capacity.sequences,
                                            .max_tokens = positions,
                                            .max_sequence_tokens = capacity.sequence_positions,
                                            .max_batch_tokens = arguments.chunk.value_or(kGpuChunk),
                                            .gpu_memory = arguments.gpu_memory,
                                            .progress = progress});
    if (made) {
      line.clear();
      const engine::CudaPlan& plan = *(*made)->plan().cuda;
      fmt::print(stderr, "{}: {}\n", plan.device, plan.memory.describe());
      for (const std::string& why : plan.companions) fmt::print(stderr, "forced: {}\n", why);
    }
    return made;
  }
  return engine::make_cpu_executor(model.weights,
                                   {.options = arguments.options,
                                    .max_sequences = capacity.sequences,
                                    .max_tokens = positions,
                                    .max_batch_tokens = arguments.chunk.value_or(kCpuChunk),
                                    .export_layers = capacity.export_layers,
                                    .progress = progress});
}

}  // namespace gauntlet::cli
