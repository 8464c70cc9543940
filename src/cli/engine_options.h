// What the commands that run a model share: which model, which engine options, and how both become
// an executor.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/ranks/rank_options.h"
#include "engine/option_table.h"
#include "engine/steps/executor.h"
#include "model/tokens/tokenizer.h"
#include "model/weights.h"

namespace gauntlet::cli {

/// Tokens of one step on CPUs.
inline constexpr std::int64_t kCpuChunk = 512;
/// And on GPUs.
inline constexpr std::int64_t kGpuChunk = 8192;
/// Of random weights where none is named.
inline constexpr const char* kDefaultShape = "gpt-oss-20b";

enum class WeightSource { files, random };
enum class BackendChoice { automatic, cpu, cuda };

struct EngineArguments {
  std::optional<std::string> model;  // none: gauntlet-tiny
  WeightSource weights = WeightSource::files;
  std::optional<std::string> shape;  // of random weights
  std::int64_t layers = 0;           // of random weights; 0: all of the shape
  BackendChoice backend = BackendChoice::automatic;
  engine::EngineOptions options;
  std::optional<std::int64_t> chunk;  // none: what suits the backend
  double gpu_memory = 0.9;
  RankArguments ranks;
  const RankJob* job = nullptr;  // of rank 0; null: there is one rank
};

/// --model, --weights, --shape, --layers.
void add_model_options(CLI::App& command, EngineArguments& arguments);
/// --backend, --chunk, --gpu-memory and those of engine::option_table().
void add_engine_options(CLI::App& command, EngineArguments& arguments);
/// The flag of one entry of that table.
void add_option(CLI::App& command, engine::EngineOptions& options, const engine::OptionFlag& flag);
/// --activations f32|int8|auto; exact unless said `otherwise`.
void add_activations(CLI::App& command, EngineArguments& arguments,
                     engine::Activations otherwise = engine::Activations::f32);
/// --activations with a list of them.
void add_activation_list(CLI::App& command, std::vector<engine::Activations>& list);

struct SamplingArguments {
  engine::SamplingParams given;
  std::optional<std::uint64_t> seed;

  /// With a seed of chance where none is given.
  engine::SamplingParams params() const;
};
/// --temperature, --top-k, --top-p, --min-p, --seed.
void add_sampling_options(CLI::App& command, SamplingArguments& arguments);

struct OpenModel {
  model::ModelWeights weights;
  std::optional<model::Tokenizer> tokenizer;  // none with random weights
};
Expected<OpenModel> open_model(const EngineArguments& arguments);

struct Capacity {
  std::int64_t sequences = 2;           // one that runs, and the prompt that is kept of it
  std::int64_t positions = 0;           // of all of them; 0: as many as the model has
  std::int64_t sequence_positions = 0;  // of one, where KV is contiguous; 0: an equal share
  std::vector<int> export_layers = {};  // whose residuals a draft head goes on from
};
/// Where the model will run: auto is the GPU where there is one that can.
Expected<engine::Backend> choose_backend(const EngineArguments& arguments);
/// Shows a progress line while the weights are packed.
Expected<std::unique_ptr<engine::Executor>> make_executor(const OpenModel& model,
                                                          const EngineArguments& arguments,
                                                          const Capacity& capacity);

}  // namespace gauntlet::cli
