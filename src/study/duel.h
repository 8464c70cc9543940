// Two stacks in turns: the same workloads on both in ABBA blocks, so that whatever the machine does
// meanwhile meets both alike.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/speed.h"
#include "stats/statistics.h"
#include "study/workbench.h"

namespace gauntlet::study {

/// What is timed; `tokens` of a decode are chosen so that a sample lasts long enough.
struct Workload {
  std::string name;  // "prompt", "decode_1"
  engine::SpeedTest test;
};

inline constexpr std::int64_t kMostDecodeTokens = 32;  // of one sample
/// Tokens that a fork of a context gets at most: one that nobody times, and two samples, each after
/// another such one.
inline constexpr std::int64_t kForkTokens = 1 + 2 * (1 + kMostDecodeTokens);

struct DuelBudget {
  double seconds = 5;
  int least_blocks = 4;
  int most_blocks = 24;
};

/// One workload on both sides.
struct Bout {
  Workload workload;
  std::vector<lab::Block> blocks;
  double bytes[2] = {0, 0};      // of one repetition: what must be read
  engine::SpeedLimit limits[2];  // likewise
  double experts_per_layer = 0;  // that a step's tokens chose on side b
};

struct DuelSide {
  std::vector<std::string> plan;
  std::int64_t weight_bytes = 0;
  std::string read_from;  // the memory whose rate is the limit; empty: unknown
};

struct Duel {
  DuelSide a, b;
  std::vector<Bout> bouts;
};

Expected<Duel> duel(const Workbench& bench, engine::Executor& a, engine::Executor& b,
                    std::vector<Workload> workloads, const DuelBudget& budget);

nlohmann::json to_json(const Duel& duel);
nlohmann::json to_json(const std::vector<lab::Block>& blocks);
std::vector<lab::Block> blocks_from_json(const nlohmann::json& json);

/// Room that all these workloads need at once.
Room room_for(const std::vector<Workload>& workloads);

}  // namespace gauntlet::study
