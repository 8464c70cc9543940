// Has this machine what a job of several ranks needs?
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/expected.h"
#include "core/os/system_files.h"
#include "lab/doctor/doctor.h"

namespace gauntlet::lab::doctor {

/// What the checks look at; tests fill it with machines we do not have.
struct RankMachine {
  SystemFiles files = SystemFiles();
  int cpus = 1;         // this process may use
  int online_cpus = 1;  // there are
  bool is_root = false;
  Expected<std::string> mpirun = Error{"not looked for"};
  std::string mpirun_version;  // what it says of itself
  Expected<std::string> library = Error{"not looked for"};
  std::string shared_folder = "/dev/shm";
  std::optional<DiskSpace> shared_memory;
  std::string session_folder;  // mpirun's
  bool session_is_writable = false;
  std::string host;
  bool host_resolves = false;
  bool sees_processes = false;     // pidfd_open works
  std::int64_t locked_bytes = -1;  // ulimit -l; -1: unlimited
};
RankMachine this_rank_machine();

std::vector<Finding> check_ranks(const RankMachine& machine);

}  // namespace gauntlet::lab::doctor
