// Two stacks in turns: the same workloads on both, so that whatever the machine does meanwhile
// meets both alike.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/measure/speed.h"
#include "lab/records/result.h"
#include "stats/blocks.h"
#include "study/bench/workbench.h"

namespace gauntlet::study::inline bench {

/// What is timed; `tokens` of a decode are chosen so that a sample lasts long enough.
struct Workload {
  std::string name;  // "prompt", "decode_1"
  engine::SpeedTest test;

  bool is_prompt() const { return name == "prompt"; }
};

inline constexpr std::int64_t kMostDecodeTokens = 32;  // of one sample
/// Tokens that a fork of a context gets at most: one that nobody times, and two samples, each after
/// another such one.
inline constexpr std::int64_t kForkTokens = 1 + 2 * (1 + kMostDecodeTokens);

struct DuelBudget {
  double seconds = 5;
  int least_blocks = 4;
  int most_blocks = 24;
  std::uint64_t seed = 1;  // of the order of the turns
};

/// One block of each workload, kept or dropped together; an error ends the duel.
using TakeRound = std::function<Expected<bool>()>;
/// Takes rounds until the budget ends. An error where too few of them were kept to judge by:
/// thermal slowdown, which `conditions` counts, drops the others.
Expected<void> take_rounds(const DuelBudget& budget, const lab::Conditions& conditions,
                           const TakeRound& take_round);

/// One workload on both sides.
struct Bout {
  Workload workload;
  stats::ProcessBlocks blocks;               // of sides a and b
  std::array<double, 2> bytes = {0, 0};      // of one repetition: what must be read
  std::array<engine::SpeedLimit, 2> limits;  // likewise
  double experts_per_layer = 0;              // that a step's tokens chose on side b
};

struct DuelSide {
  std::vector<std::string> plan;
  std::int64_t weight_bytes = 0;
  std::string read_from;  // the memory whose rate is the limit; empty: unknown
};

struct Duel {
  DuelSide a, b;
  std::vector<Bout> bouts;
  std::optional<lab::Conditions> conditions;  // none in journals of earlier versions
};

Expected<Duel> duel(const Workbench& bench, engine::Executor& a, engine::Executor& b,
                    std::vector<Workload> workloads, const DuelBudget& budget);

/// Room that all these workloads need at once.
Room room_for(const std::vector<Workload>& workloads);

}  // namespace gauntlet::study::inline bench
