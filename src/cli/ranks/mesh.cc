// gauntlet mesh: what each rank of a mesh would hold, and what it would send.
#include "engine/ranks/mesh.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/table.h"
#include "engine/ranks/rank_memory.h"

namespace gauntlet::cli {
namespace {

using json = nlohmann::ordered_json;
using engine::Mesh;
using model::Range;

struct MeshOptions {
  std::string shape = kDefaultShape;
  std::optional<int> ranks;
  std::optional<std::string> mesh;
  Format format = Format::text;
};

std::string text_of(const Range& range) {
  return range.size() == 1 ? fmt::format("{}", range.begin)
                           : fmt::format("{}-{}", range.begin, range.end - 1);
}

json json_of(const Range& range) { return {range.begin, range.end}; }

Expected<Mesh> mesh_of(const MeshOptions& options, const model::ModelConfig& config) {
  if (options.ranks.has_value() == options.mesh.has_value()) {
    return wrong_use("give either --ranks or --mesh");
  }
  return options.mesh ? Mesh::parse(*options.mesh) : engine::mesh_for(config, *options.ranks);
}

/// Of each rank, with sums as --rank-sums reduced has them.
Expected<std::vector<engine::RankMemory>> memories_of(const model::ModelConfig& config,
                                                      const Mesh& mesh) {
  const model::ModelWeights weights = model::random_model(config, 0);
  std::vector<engine::RankMemory> memories;
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    const auto memory = engine::memory_of(weights, mesh, rank, engine::RankSums::reduced);
    if (!memory) return memory.error();
    memories.push_back(*memory);
  }
  return memories;
}

using Memories = std::vector<engine::RankMemory>;

void print_json(const model::ModelConfig& config, const Mesh& mesh, const Memories& memories) {
  json all = {{"shape", config.name}, {"mesh", mesh.text()}, {"ranks", json::array()}};
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    const model::Slice slice = engine::shard_of(config, mesh, rank);
    const engine::RankCosts costs = engine::costs_of(config, mesh, rank);
    all["ranks"].push_back({{"rank", rank},
                            {"layers", json_of(slice.layers)},
                            {"heads", json_of(slice.heads)},
                            {"kv_heads", json_of(slice.kv_heads)},
                            {"experts", json_of(slice.experts)},
                            {"intermediate", json_of(slice.intermediate)},
                            {"vocab", json_of(slice.vocab)},
                            {"weight_bytes", costs.weight_bytes},
                            {"expert_bytes", costs.expert_bytes},
                            {"allocated_bytes", memories[rank].weight_bytes},
                            {"kv_bytes_per_position", costs.kv_position_bytes},
                            {"sent_bytes_per_token", costs.sent_bytes},
                            {"meetings_per_token", costs.meetings}});
  }
  fmt::print("{}\n", all.dump());
}

void print_text(const model::ModelConfig& config, const Mesh& mesh, const Memories& memories) {
  Table table({">rank", "layers", "heads", "KV heads", "experts", "intermediate", "vocabulary",
               ">weights", ">allocated", ">KV/position", ">sent/token", ">meetings/token"});
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    const model::Slice slice = engine::shard_of(config, mesh, rank);
    const engine::RankCosts costs = engine::costs_of(config, mesh, rank);
    table.add({std::to_string(rank), text_of(slice.layers), text_of(slice.heads),
               text_of(slice.kv_heads), text_of(slice.experts), text_of(slice.intermediate),
               text_of(slice.vocab),
               fmt::format("{:.2f} GB", static_cast<double>(costs.weight_bytes) / 1e9),
               fmt::format("{:.2f} GB", static_cast<double>(memories[rank].weight_bytes) / 1e9),
               fmt::format("{} B", costs.kv_position_bytes),
               fmt::format("{:.1f} kB", static_cast<double>(costs.sent_bytes) / 1e3),
               std::to_string(costs.meetings)});
  }
  fmt::print("{} on {} ranks, {}: a stage has {}; tp{} for attention, ep{} for experts\n\n{}",
             config.name, mesh.ranks(), mesh.text(), mesh.stage_ranks(), mesh.tp, mesh.ep,
             table.text());
  fmt::print(
      "\nWeights: in gpt-oss's own types, the embedding whole; allocated: packed on a CPU, which "
      "reads the embedding where it lies. KV as bf16. Sent: for one decoded token, partial sums as "
      "float32 to every rank that shares them.\n");
}

int show_mesh(const MeshOptions& options) {
  const auto config = model::random_shape(options.shape);
  if (!config) return report_error(config.error());
  const auto mesh = mesh_of(options, *config);
  if (!mesh) return report_error(mesh.error());
  if (const auto fits = engine::check_mesh(*config, *mesh); !fits) {
    return report_error(fits.error());
  }
  const auto memories = memories_of(*config, *mesh);
  if (!memories) return report_error(memories.error());
  options.format == Format::json ? print_json(*config, *mesh, *memories)
                                 : print_text(*config, *mesh, *memories);
  return 0;
}

}  // namespace

void add_mesh(CLI::App& app, Context& context) {
  auto options = std::make_shared<MeshOptions>();
  CLI::App* command = app.add_subcommand("mesh", "what each rank of a mesh would hold and send");
  command->add_option("--shape", options->shape, "gpt-oss-20b, gpt-oss-120b or a config.json")
      ->capture_default_str()
      ->option_text("NAME|FILE");
  command->add_option("--ranks", options->ranks, "as many, divided as well as the shape allows")
      ->option_text("N");
  command->add_option("--mesh", options->mesh, "tensor, expert and pipeline ways")
      ->option_text("tp2,ep4,pp2");
  add_format(*command, options->format);
  command->footer("Example:  gauntlet mesh --shape gpt-oss-120b --ranks 8");
  command->callback([options, &context] { context.exit_code = show_mesh(*options); });
}

}  // namespace gauntlet::cli
