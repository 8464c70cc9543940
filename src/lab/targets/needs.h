// Needs: the names by which a target says what it needs of a machine. Whether a machine has it is
// found out elsewhere (lab/run/capability.h).
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace gauntlet::lab::inline targets {

/// A need with a number in it: "sm_90a", "2 GPUs", "4 ranks".
struct NumberedNeed {
  enum class What { architecture, gpus, numa_nodes, ranks };
  What what = What::gpus;
  int number = 0;
  bool exactly = false;  // an architecture with an "a": that one generation
};
/// Nothing where the need has no number, or one that means nothing.
std::optional<NumberedNeed> numbered_need(const std::string& need);

/// Those without a number, in the order of their names.
std::vector<std::string> plain_needs();
/// Every need that a target may declare, those with a number as "<n> GPUs".
std::vector<std::string> all_needs();
bool is_need(const std::string& need);
/// One that only a GPU meets: no need of CPU sides.
bool is_gpu_need(const std::string& need);

}  // namespace gauntlet::lab::inline targets
