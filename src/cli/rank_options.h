// What commands that run a model on several ranks share: which ranks, and who leads them.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "cli/command.h"
#include "core/ranks/group.h"
#include "engine/ranks/rank_executor.h"

namespace gauntlet::cli {

struct EngineArguments;

struct RankArguments {
  std::optional<std::string> mesh;
  std::optional<int> local_ranks;
  engine::RankSums sums = engine::RankSums::reduced;

  bool given() const { return mesh.has_value() || local_ranks.has_value(); }
};

/// --mesh, --local-ranks, --rank-sums.
void add_rank_options(CLI::App& command, RankArguments& arguments);

/// One rank's view of the job that runs a command.
struct RankJob {
  ranks::Group& group;
  engine::Mesh mesh;
  engine::RankSums sums = engine::RankSums::reduced;
  int threads = 1;    // of each rank, where none were asked for
  int first_cpu = 0;  // of those that ranks share
};

/// What a rank's executor is made of.
engine::RankConfig rank_config(const EngineArguments& arguments, const RankJob& job);

/// Calls `lead` as it stands where no ranks are asked for. Otherwise it runs on rank 0, its
/// arguments naming the job, while the others follow it; the exit code is this process's.
int run_on_ranks(const EngineArguments& arguments,
                 const std::function<int(const EngineArguments&)>& lead);

}  // namespace gauntlet::cli
