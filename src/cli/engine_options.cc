#include "cli/engine_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <random>

#include "cli/progress.h"
#include "engine/steps/cpu_executor.h"
#include "engine/steps/cuda_executor.h"
#include "model/tokens/load_tokenizer.h"

namespace gauntlet::cli {
namespace {

constexpr const char* kDefaultModel = "gauntlet-tiny";
constexpr std::uint64_t kWeightSeed = 1;

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

void add_options_of(CLI::App& command, EngineArguments& arguments, engine::FlagGroup group) {
  for (const engine::OptionEntry& entry : engine::option_table()) {
    if (entry.flag.group == group) add_option(command, arguments.options, entry.flag);
  }
}

/// The flag of --activations with a word about what it is when not given.
engine::OptionFlag activations_flag(const std::string& otherwise) {
  engine::OptionFlag flag = engine::find_option("--activations").flag;
  flag.help += fmt::format(" (default: {})", otherwise);
  return flag;
}

}  // namespace

void add_option(CLI::App& command, engine::EngineOptions& options, const engine::OptionFlag& flag) {
  if (flag.number) {
    command
        .add_option_function<int>(
            flag.name, [&options, set = flag.number->set](int value) { set(options, value); },
            flag.help)
        ->check(CLI::Range(flag.number->least, flag.number->most))
        ->option_text("N");
    return;
  }
  if (flag.words.size() == 1 && flag.words[0].word.empty()) {
    command.add_flag_callback(
        flag.name, [&options, set = flag.words[0].set] { set(options); }, flag.help);
    return;
  }
  std::vector<std::string> words;
  for (const engine::OptionWord& word : flag.words) words.push_back(word.word);
  add_words(command, flag.name, words, flag.value(options), flag.help,
            [&options, choices = flag.words](std::size_t chosen) { choices[chosen].set(options); });
}

void add_engine_options(CLI::App& command, EngineArguments& arguments) {
  add_choice<BackendChoice>(command, "--backend", arguments.backend,
                            {{"auto", BackendChoice::automatic},
                             {"cpu", BackendChoice::cpu},
                             {"cuda", BackendChoice::cuda}},
                            "where the model runs (default: auto, a GPU where there is one)");
  add_options_of(command, arguments, engine::FlagGroup::shared);
  command
      .add_option("--chunk", arguments.chunk,
                  "tokens of one step (default: 512 on CPUs, 8192 on a GPU)")
      ->check(CLI::Range(1, 16384))
      ->option_text("N");
  add_options_of(command, arguments, engine::FlagGroup::cuda);
  command.add_option("--gpu-memory", arguments.gpu_memory, "share of the GPU's free memory to use")
      ->check(CLI::Range(0.05, 1.0))
      ->capture_default_str()
      ->option_text("PART");
}

void add_activations(CLI::App& command, EngineArguments& arguments, engine::Activations otherwise) {
  arguments.options.activations = otherwise;
  add_option(command, arguments.options, activations_flag(std::string(name_of(otherwise))));
}

void add_activation_list(CLI::App& command, std::vector<engine::Activations>& list) {
  const engine::OptionFlag flag = activations_flag("f32,auto");
  std::vector<std::string> names;
  for (const engine::OptionWord& word : flag.words) names.push_back(word.word);
  const auto choose = [&list, flag, names](const std::vector<std::string>& words) {
    list.clear();
    for (const std::string& word : words) {
      const auto found = std::ranges::find(names, word);
      if (found == names.end()) refuse_choice(flag.name, word, names);
      engine::EngineOptions chosen;
      flag.words[static_cast<std::size_t>(found - names.begin())].set(chosen);
      list.push_back(chosen.activations);
    }
  };
  command.add_option_function<std::vector<std::string>>(flag.name, choose, flag.help)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->option_text(fmt::format("{},...", fmt::join(names, "|")));
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
  // Ranks of GPUs have to be asked for: those that share one are slower than one alone.
  const bool automatic = arguments.backend == BackendChoice::automatic;
  if (arguments.backend == BackendChoice::cpu || (arguments.ranks.given() && automatic)) {
    return engine::Backend::cpu;
  }
  const std::string reason = engine::no_cuda_executor_reason();
  if (reason.empty()) return engine::Backend::cuda;
  if (automatic) return engine::Backend::cpu;
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
  if (arguments.job != nullptr) {
    if (!capacity.export_layers.empty()) {
      return Error{
          "--speculate eagle3 reads residuals, which ranks do not export: leave out --mesh",
          ErrorKind::wrong_use};
    }
    engine::RankConfig config = rank_config(arguments, *arguments.job);
    config.cpu.max_sequences = capacity.sequences;
    config.cpu.max_tokens = positions;
    config.cpu.progress = progress;
    if (config.cuda) {
      config.cuda->max_sequences = capacity.sequences;
      config.cuda->max_tokens = positions;
      config.cuda->max_sequence_tokens = capacity.sequence_positions;
      config.cuda->progress = progress;
    }
    if (const auto called = call_followers(arguments, *arguments.job); !called) {
      return called.error();
    }
    return engine::lead_ranks(arguments.job->group, model.weights, config);
  }
  if (*backend == engine::Backend::cuda) {
    auto made = engine::make_cuda_executor(model.weights,
                                           {.options = arguments.options,
                                            .max_sequences = capacity.sequences,
                                            .max_tokens = positions,
                                            .max_sequence_tokens = capacity.sequence_positions,
                                            .max_batch_tokens = arguments.chunk.value_or(kGpuChunk),
                                            .gpu_memory = arguments.gpu_memory,
                                            .export_layers = capacity.export_layers,
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
