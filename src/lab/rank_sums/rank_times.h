// How long ranks take for a sum, under mpirun's own settings and under others, and which of them
// are worth keeping.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/expected.h"
#include "core/ranks/group.h"

namespace gauntlet::lab::inline rank_sums {

/// Of one message size, in microseconds a call.
struct SumTime {
  std::int64_t bytes = 0;
  double group_us = 0;  // the engine's all-sum
  double mpi_us = 0;    // MPI's own all-reduce
};
/// All ranks of a job under mpirun call it.
Expected<std::vector<SumTime>> time_sums(ranks::Group& group);

/// Variables that mpirun hands to its ranks.
struct RankSetting {
  std::string name;  // "single copy: none"
  enum class Of { nothing, transport, all_reduce } of = Of::nothing;
  std::vector<std::pair<std::string, std::string>> variables;
};
/// The first changes nothing.
std::vector<RankSetting> rank_settings();

struct SettingTimes {
  RankSetting setting;
  std::vector<std::vector<SumTime>> rounds;
};
/// Starts this program as ranks of a job under mpirun, setting by setting in turns.
Expected<std::vector<SettingTimes>> compare_settings(const std::string& program, int ranks,
                                                     int rounds,
                                                     const std::function<void(std::string)>& show);

/// A row of sums at that size, over the rounds.
struct TimeSpread {
  double least = 0, middle = 0, most = 0;
};
enum class SumBy { group, mpi };
TimeSpread spread_of(const SettingTimes& times, SumBy by, std::size_t size);

/// Of the settings of one kind, the one that was clearly faster than the first at `size`: each of
/// its rounds beat all of the first's, and it lost clearly at no other size. Null: there is none.
const SettingTimes* clearly_faster(const std::vector<SettingTimes>& all, RankSetting::Of of,
                                   std::size_t size);
/// As KEY=VALUE lines with what was measured as comments.
std::string presets_text(const std::vector<SettingTimes>& all, const std::string& where);

/// In a rank: where its rank 0 writes what it measured, as JSON. Empty: nothing was asked.
std::string times_file();
Expected<void> write_times(const std::string& file, const std::vector<SumTime>& times);

}  // namespace gauntlet::lab::inline rank_sums
