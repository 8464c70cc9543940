// doctor --ranks: has this machine what a job of several ranks needs?
#pragma once
#include <string>
#include <vector>

#include "cli/command.h"
#include "core/os/system_files.h"
#include "lab/doctor/doctor.h"

namespace gauntlet::cli {

/// What the checks look at; tests fill it with machines we do not have.
struct RankMachine {
  SystemFiles files;
  int cpus = 1;         // this process may use
  int online_cpus = 1;  // there are
  bool is_root = false;
  Expected<std::string> mpirun = Error{"not looked for"};
  std::string mpirun_version;  // what it says of itself
  Expected<std::string> library = Error{"not looked for"};
  std::string shared_folder = "/dev/shm";
  std::optional<lab::doctor::DiskSpace> shared_memory;
  std::string session_folder;  // mpirun's
  bool session_is_writable = false;
  std::string host;
  bool host_resolves = false;
  bool sees_processes = false;     // pidfd_open works
  std::int64_t locked_bytes = -1;  // ulimit -l; -1: unlimited
};
RankMachine this_rank_machine();

std::vector<lab::doctor::Finding> check_ranks(const RankMachine& machine);

/// Adds --ranks and --ranks-env to the command doctor. Under mpirun its ranks measure.
void add_rank_doctor(CLI::App& app, Context& context);

}  // namespace gauntlet::cli
