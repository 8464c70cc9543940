#include "lab/rank_sums/rank_times.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/os/files.h"
#include "core/os/process.h"
#include "core/ranks/mpi_all_reduce.h"
#include "core/ranks/start.h"

namespace gauntlet::lab::inline rank_sums {
namespace {

using Clock = std::chrono::steady_clock;
using json = nlohmann::ordered_json;

constexpr const char* kFileVariable = "GAUNTLET_RANK_TIMES";
/// The second is a decoded token's row at gpt-oss's width: 2880 floats.
constexpr std::int64_t kBytes[] = {1 << 10, 11520, 64 << 10, 1 << 20};
constexpr std::size_t kTokenSize = 1;

int repetitions_of(std::int64_t bytes) { return bytes > 100'000 ? 10 : 50; }

double us_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

}  // namespace

Expected<std::vector<SumTime>> time_sums(ranks::Group& group) {
  const auto all_reduce = ranks::find_mpi_all_reduce();
  if (!all_reduce) return all_reduce.error();
  std::vector<SumTime> times;
  for (const std::int64_t bytes : kBytes) {
    std::vector<float> numbers(static_cast<std::size_t>(bytes) / sizeof(float), 0.0f);
    std::vector<double> of_group, of_mpi;
    const int repetitions = repetitions_of(bytes);
    // In turns; the first of each warms up.
    for (int batch = 0; batch < 4; ++batch) {
      if (const auto met = group.barrier(); !met) return met.error();
      auto begin = Clock::now();
      for (int i = 0; i < repetitions; ++i) {
        if (const auto summed = group.all_sum(numbers); !summed) return summed.error();
      }
      if (batch > 0) of_group.push_back(us_since(begin) / repetitions);
      if (const auto met = group.barrier(); !met) return met.error();
      begin = Clock::now();
      for (int i = 0; i < repetitions; ++i) {
        if (!(*all_reduce)(numbers)) return Error{"MPI's all-reduce failed"};
      }
      if (batch > 0) of_mpi.push_back(us_since(begin) / repetitions);
    }
    const auto middle = [](std::vector<double>& values) {
      std::ranges::sort(values);
      return values[values.size() / 2];
    };
    times.push_back({.bytes = bytes, .group_us = middle(of_group), .mpi_us = middle(of_mpi)});
  }
  return times;
}

std::vector<RankSetting> rank_settings() {
  using Of = RankSetting::Of;
  std::vector<RankSetting> all = {
      {.name = "as it is", .of = Of::nothing, .variables = {}},
      {.name = "no single copy",
       .of = Of::transport,
       .variables = {{"OMPI_MCA_btl_vader_single_copy_mechanism", "none"}}},
      {.name = "eager up to 64 KiB",
       .of = Of::transport,
       .variables = {{"OMPI_MCA_btl_vader_eager_limit", "65536"}}}};
  for (const char* algorithm : {"basic_linear", "nonoverlapping", "recursive_doubling", "ring",
                                "segmented_ring", "rabenseifner"}) {
    all.push_back({.name = algorithm,
                   .of = Of::all_reduce,
                   .variables = {{"OMPI_MCA_coll_tuned_use_dynamic_rules", "1"},
                                 {"OMPI_MCA_coll_tuned_allreduce_algorithm", algorithm}}});
  }
  return all;
}

std::string times_file() {
  const char* file = std::getenv(kFileVariable);
  return file == nullptr ? "" : file;
}

Expected<void> write_times(const std::string& file, const std::vector<SumTime>& times) {
  json all = json::array();
  for (const SumTime& one : times) {
    all.push_back({{"bytes", one.bytes}, {"group_us", one.group_us}, {"mpi_us", one.mpi_us}});
  }
  std::ofstream out(file);
  out << all.dump() << "\n";
  out.close();
  if (!out) return Error{fmt::format("{} cannot be written", file)};
  return {};
}

namespace {

Expected<std::vector<SumTime>> times_under(const RankSetting& setting, const std::string& program,
                                           int ranks, const std::string& folder) {
  const std::string file = folder + "/times.json", log = folder + "/job.log";
  std::filesystem::remove(file);
  std::filesystem::remove(log);
  const auto job = ranks::mpirun_command(ranks, {program, "doctor", "--ranks"});
  if (!job) return job.error();
  std::vector<std::string> argv = {"/usr/bin/env", fmt::format("{}={}", kFileVariable, file)};
  for (const auto& [name, value] : setting.variables) argv.push_back(name + "=" + value);
  argv.insert(argv.end(), job->begin(), job->end());
  const auto outcome = run_child({.argv = argv, .log_path = log, .timeout_s = 60, .grace_s = 3});
  if (!outcome) return outcome.error();
  const auto text = read_file(file);
  const json all = text ? json::parse(*text, nullptr, false) : json();
  if (!all.is_array()) {
    const auto said = read_file(log);
    return Error{fmt::format("{} ranks under mpirun measured nothing with '{}': {}", ranks,
                             setting.name, said ? said->substr(0, 400) : "no output")};
  }
  std::vector<SumTime> times;
  for (const json& one : all) {
    times.push_back({.bytes = one.at("bytes").get<std::int64_t>(),
                     .group_us = one.at("group_us").get<double>(),
                     .mpi_us = one.at("mpi_us").get<double>()});
  }
  return times;
}

/// Gone with what is in it.
struct Folder {
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "gauntlet-ranks-XXXXXX");
    if (mkdtemp(pattern.data()) != nullptr) path = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    if (!path.empty()) std::filesystem::remove_all(path, ignored);
  }
  std::string path;
};

}  // namespace

Expected<std::vector<SettingTimes>> compare_settings(const std::string& program, int ranks,
                                                     int rounds,
                                                     const std::function<void(std::string)>& show) {
  const Folder folder;
  if (folder.path.empty()) return Error{"no folder can be made for the measurement"};
  std::vector<SettingTimes> all;
  for (RankSetting& setting : rank_settings()) {
    all.push_back({.setting = std::move(setting), .rounds = {}});
  }
  for (int round = 0; round < rounds; ++round) {
    for (SettingTimes& one : all) {
      show(fmt::format("round {} of {}: {}", round + 1, rounds, one.setting.name));
      auto times = times_under(one.setting, program, ranks, folder.path);
      if (!times) return times.error();
      one.rounds.push_back(std::move(*times));
    }
  }
  return all;
}

TimeSpread spread_of(const SettingTimes& times, SumBy by, std::size_t size) {
  std::vector<double> values;
  for (const auto& round : times.rounds) {
    values.push_back(by == SumBy::group ? round.at(size).group_us : round.at(size).mpi_us);
  }
  std::ranges::sort(values);
  return {.least = values.front(), .middle = values[values.size() / 2], .most = values.back()};
}

const SettingTimes* clearly_faster(const std::vector<SettingTimes>& all, RankSetting::Of of,
                                   std::size_t size) {
  const SumBy by = of == RankSetting::Of::transport ? SumBy::group : SumBy::mpi;
  const SettingTimes* best = nullptr;
  for (const SettingTimes& one : all) {
    if (one.setting.of != of) continue;
    bool loses = false;
    for (std::size_t s = 0; s < one.rounds.front().size(); ++s) {
      loses |= spread_of(one, by, s).least > spread_of(all.front(), by, s).most;
    }
    const TimeSpread own = spread_of(one, by, size);
    if (loses || own.most >= spread_of(all.front(), by, size).least) continue;
    if (best == nullptr || own.middle < spread_of(*best, by, size).middle) best = &one;
  }
  return best;
}

std::string presets_text(const std::vector<SettingTimes>& all, const std::string& where) {
  std::string text = fmt::format(
      "# Settings of OpenMPI for ranks of one host, measured by gauntlet doctor --ranks: {}.\n"
      "# Microseconds a call, the middle of {} jobs (least to most). A setting is kept where all "
      "of "
      "its jobs beat all\n"
      "# of those without it at {} bytes, the row of a token, and none is clearly worse at another "
      "size.\n",
      where, all.front().rounds.size(), kBytes[kTokenSize]);
  for (const SettingTimes& one : all) {
    text += fmt::format("# {}:", one.setting.name);
    for (std::size_t s = 0; s < one.rounds.front().size(); ++s) {
      const std::int64_t bytes = one.rounds.front()[s].bytes;
      if (one.setting.of != RankSetting::Of::all_reduce) {
        const TimeSpread group = spread_of(one, SumBy::group, s);
        text += fmt::format(" {} B {:.1f} ({:.1f} to {:.1f})", bytes, group.middle, group.least,
                            group.most);
      }
      if (one.setting.of != RankSetting::Of::transport) {
        const TimeSpread mpi = spread_of(one, SumBy::mpi, s);
        text += fmt::format(" {} B by MPI_Allreduce {:.1f} ({:.1f} to {:.1f})", bytes, mpi.middle,
                            mpi.least, mpi.most);
      }
      text += s + 1 < one.rounds.front().size() ? "," : "\n";
    }
  }
  using Of = RankSetting::Of;
  bool any = false;
  for (const auto& [of, what] : {std::pair{Of::transport, "the engine's own sums"},
                                 std::pair{Of::all_reduce, "programs that call MPI_Allreduce"}}) {
    const SettingTimes* best = clearly_faster(all, of, kTokenSize);
    if (best == nullptr) {
      text +=
          fmt::format("# For {}: nothing was clearly faster than OpenMPI's own choice.\n", what);
      continue;
    }
    any = true;
    text += fmt::format("# For {}: {}.\n", what, best->setting.name);
    for (const auto& [name, value] : best->setting.variables) {
      text += fmt::format("{}={}\n", name, value);
    }
  }
  if (!any) text += "# Nothing is set.\n";
  return text;
}

}  // namespace gauntlet::lab::inline rank_sums
