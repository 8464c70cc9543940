#include "cli/ranks/rank_doctor.h"

#include <fmt/format.h>

#include <fstream>
#include <memory>

#include "cli/progress.h"
#include "core/ranks/start.h"
#include "lab/doctor/ranks.h"
#include "lab/rank_sums/rank_times.h"

namespace gauntlet::cli {
namespace {

using lab::SumTime;
using lab::doctor::Finding;

/// As a rank under mpirun: sums are timed, and rank 0 says how long they take.
Expected<std::vector<Finding>> measure_as_rank() {
  auto group = ranks::join();
  if (!group) return group.error();
  const auto times = lab::time_sums(**group);
  if (!times) return times.error();
  std::vector<Finding> findings;
  if ((*group)->rank() > 0) return findings;
  if (const std::string file = lab::times_file(); !file.empty()) {
    if (const auto written = lab::write_times(file, *times); !written) return written.error();
    return findings;
  }
  for (const SumTime& one : *times) {
    findings.push_back(
        {.area = "ranks",
         .name = fmt::format("sum of {} bytes", one.bytes),
         .level = Finding::Level::ok,
         .reason = fmt::format("{:.1f} us by {} ranks of the engine, {:.1f} us by MPI_Allreduce",
                               one.group_us, (*group)->size(), one.mpi_us),
         .fix = ""});
  }
  return findings;
}

struct EnvOptions {
  std::string file;
  int rounds = 3;
};

Expected<std::vector<Finding>> look_at_ranks(const EnvOptions& env, const std::string& program) {
  if (ranks::started_as().by != ranks::Start::By::none) return measure_as_rank();
  const lab::doctor::RankMachine machine = lab::doctor::this_rank_machine();
  std::vector<Finding> findings = lab::doctor::check_ranks(machine);
  if (env.file.empty()) return findings;
  constexpr int kRanks = 2;
  ProgressLine line;
  const auto all = lab::compare_settings(program, kRanks, env.rounds,
                                         [&](const std::string& what) { line.show(what); });
  line.clear();
  if (!all) return all.error();
  std::ofstream out(env.file);
  out << lab::presets_text(*all, fmt::format("{} ranks on {}, {} CPUs, {}", kRanks, machine.host,
                                             machine.cpus, machine.mpirun_version));
  out.close();
  if (!out) return Error{fmt::format("{} cannot be written", env.file)};
  findings.push_back({.area = "ranks",
                      .name = "presets",
                      .level = Finding::Level::ok,
                      .reason = env.file + " has what was measured, and what is worth setting",
                      .fix = ""});
  return findings;
}

}  // namespace

void add_rank_doctor(CLI::App& app, Context& context) {
  auto env = std::make_shared<EnvOptions>();
  CLI::App* command = app.get_subcommand("doctor");
  command->add_flag_callback(
      "--ranks",
      [env, &context] {
        context.checks = [env, &context] { return look_at_ranks(*env, context.program); };
      },
      "check what a job of several ranks needs instead; under mpirun, time its sums");
  command
      ->add_option("--ranks-env", env->file,
                   "with --ranks: also measure OpenMPI's settings, and write those worth setting "
                   "as lines for an environment")
      ->option_text("FILE")
      ->needs("--ranks");
  command->add_option("--rounds", env->rounds, "jobs of each setting for --ranks-env")
      ->check(CLI::Range(1, 100))
      ->capture_default_str()
      ->needs("--ranks-env")
      ->option_text("N");
}

}  // namespace gauntlet::cli
