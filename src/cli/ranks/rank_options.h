// What commands that run a model on several ranks share: which ranks, and who leads them.
#pragma once
#include <functional>
#include <memory>
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
  std::optional<double> timeout_s;

  bool given() const { return mesh.has_value() || local_ranks.has_value(); }
};

/// --mesh, --local-ranks, --rank-sums, --rank-timeout.
void add_rank_options(CLI::App& command, RankArguments& arguments);

/// --rank-sums alone.
void add_rank_sums(CLI::App& command, RankArguments& arguments);

/// One rank's view of the job that runs a command.
struct RankJob {
  ranks::Group& group;
  engine::Mesh mesh;
  engine::RankSums sums = engine::RankSums::reduced;
  int threads = 1;    // of each rank, where none were asked for
  int first_cpu = 0;  // of those that ranks share
  int device = 0;     // the rank's GPU, where ranks have some
  double timeout_s = 30;
  std::shared_ptr<engine::RankPulse> pulse = {};
};

/// How a command uses its ranks.
struct RankUse {
  enum class For { one_job, serving } what = For::one_job;
};

/// What a rank's executor is made of.
engine::RankConfig rank_config(const EngineArguments& arguments, const RankJob& job);
/// Of rank 0, before engine::lead_ranks(): the others follow with these arguments. Any number of
/// executors may be led, one at a time.
Expected<void> call_followers(const EngineArguments& arguments, const RankJob& job);

/// Calls `lead` as it stands where no ranks are asked for. Otherwise it runs on rank 0, its
/// arguments naming the job, while the others follow it; the exit code is this process's.
int run_on_ranks(const EngineArguments& arguments,
                 const std::function<int(const EngineArguments&)>& lead, RankUse use = {});

}  // namespace gauntlet::cli
