#include <netdb.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "core/os/threads.h"
#include "core/ranks/mpi_group.h"
#include "core/ranks/start.h"
#include "lab/doctor/ranks.h"

namespace gauntlet::lab::doctor {
namespace {

/// The first line of what a command prints.
std::string first_line_of(const std::string& command) {
  std::string line;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return line;
  for (int c = 0; (c = std::fgetc(pipe)) != EOF && c != '\n';) line += static_cast<char>(c);
  while (std::fgetc(pipe) != EOF) {
  }
  ::pclose(pipe);
  return line;
}

}  // namespace

RankMachine this_rank_machine() {
  RankMachine machine;
  machine.cpus = static_cast<int>(allowed_cpus().size());
  machine.online_cpus = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  machine.is_root = ::geteuid() == 0;
  machine.mpirun = ranks::find_mpirun();
  if (machine.mpirun) {
    machine.mpirun_version = first_line_of("'" + *machine.mpirun + "' --version 2>&1");
  }
  machine.library = ranks::find_mpi_library();
  struct statvfs shared{};
  if (::statvfs(machine.shared_folder.c_str(), &shared) == 0) {
    const auto unit = static_cast<std::int64_t>(shared.f_frsize);
    machine.shared_memory = {.total_bytes = unit * static_cast<std::int64_t>(shared.f_blocks),
                             .free_bytes = unit * static_cast<std::int64_t>(shared.f_bavail)};
  }
  std::error_code failed;
  machine.session_folder = std::filesystem::temp_directory_path(failed).string();
  machine.session_is_writable = ::access(machine.session_folder.c_str(), W_OK | X_OK) == 0;
  char name[256] = {};
  ::gethostname(name, sizeof(name) - 1);
  machine.host = name;
  addrinfo* found = nullptr;
  machine.host_resolves = ::getaddrinfo(name, nullptr, nullptr, &found) == 0;
  if (found != nullptr) ::freeaddrinfo(found);
  const auto handle = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0));
  machine.sees_processes = handle >= 0;
  if (handle >= 0) ::close(handle);
  rlimit locked{};
  if (::getrlimit(RLIMIT_MEMLOCK, &locked) == 0 && locked.rlim_cur != RLIM_INFINITY) {
    machine.locked_bytes = static_cast<std::int64_t>(locked.rlim_cur);
  }
  return machine;
}

}  // namespace gauntlet::lab::doctor
