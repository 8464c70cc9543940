#include "core/ranks/start.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "core/check.h"
#include "core/os/process.h"
#include "core/os/system_files.h"
#include "core/os/threads.h"
#include "core/ranks/mpi_group.h"

namespace gauntlet::ranks {
namespace {

int number_of(const Environment& environment, const char* variable, int otherwise) {
  const char* value = environment(variable);
  if (value == nullptr) return otherwise;
  return static_cast<int>(leading_number(value).value_or(otherwise));
}

}  // namespace

Expected<std::string> find_mpirun(const std::string& path) {
  std::stringstream folders(path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (folder.empty()) continue;
    const std::string file = folder + "/mpirun";
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  return Error{fmt::format("mpirun is not in PATH; install OpenMPI ({})", kOpenMpiPackages)};
}

Expected<std::string> find_mpirun() {
  const char* path = std::getenv("PATH");
  return find_mpirun(path == nullptr ? std::string() : path);
}

std::vector<std::string> mpirun_command(const MpiLaunch& launch,
                                        const std::vector<std::string>& argv) {
  check(launch.ranks >= 1, "a job has at least one rank");
  check(!argv.empty(), "a rank needs a program");
  std::vector<std::string> command = {launch.mpirun, "-n", std::to_string(launch.ranks)};
  // OpenMPI refuses to run as root unless told to; containers have no other user.
  if (launch.user == MpiLaunch::User::root) command.push_back("--allow-run-as-root");
  // Without it more ranks than cores are refused.
  command.push_back("--oversubscribe");
  if (launch.ranks > launch.cpus) {
    command.insert(command.end(), {"--bind-to", "none"});
  }
  // Output of the ranks as they wrote it, whatever the user's own settings.
  command.insert(command.end(), {"--mca", "orte_tag_output", "0"});
  command.insert(command.end(), argv.begin(), argv.end());
  return command;
}

Expected<std::vector<std::string>> mpirun_command(int ranks, const std::vector<std::string>& argv) {
  const auto mpirun = find_mpirun();
  if (!mpirun) return mpirun.error();
  return mpirun_command({.mpirun = *mpirun,
                         .ranks = ranks,
                         .cpus = static_cast<int>(allowed_cpus().size()),
                         .user = ::geteuid() == 0 ? MpiLaunch::User::root : MpiLaunch::User::other},
                        argv);
}

const char* name_of(Start::By by) {
  switch (by) {
    case Start::By::none:
      return "none";
    case Start::By::mpirun:
      return "mpirun";
    case Start::By::pmix:
      return "pmix";
    case Start::By::slurm:
      return "slurm";
  }
  fail("no such starter");
}

Start started_as(const Environment& environment) {
  using By = Start::By;
  if (environment("OMPI_COMM_WORLD_SIZE") != nullptr) {
    return {.by = By::mpirun,
            .rank = number_of(environment, "OMPI_COMM_WORLD_RANK", 0),
            .size = number_of(environment, "OMPI_COMM_WORLD_SIZE", 1)};
  }
  // The shell of an allocation has SLURM_PROCID, too; only what srun starts has a step with tasks.
  const int tasks = number_of(environment, "SLURM_STEP_NUM_TASKS", 0);
  if (environment("PMIX_RANK") != nullptr) {
    return {.by = By::pmix, .rank = number_of(environment, "PMIX_RANK", 0), .size = tasks};
  }
  if (tasks > 1) {
    return {.by = By::slurm, .rank = number_of(environment, "SLURM_PROCID", 0), .size = tasks};
  }
  return {};
}

Start started_as() {
  return started_as([](const char* variable) { return std::getenv(variable); });
}

Expected<std::unique_ptr<Group>> join(const GroupOptions& options) {
  if (started_as().by == Start::By::none) return alone();
  return join_mpi(options);
}

Expected<int> open_message_pipe() {
  const std::string path = fmt::format("/proc/{}/fd/{}", ::getppid(), kMessageFd);
  const int pipe = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
  if (pipe < 0) {
    return Error{fmt::format("{} cannot be opened: {}; only rank 0 on mpirun's own machine has it",
                             path, std::strerror(errno))};
  }
  struct stat status {};
  if (::fstat(pipe, &status) != 0 || !S_ISFIFO(status.st_mode)) {
    ::close(pipe);
    return Error{fmt::format("{} is no pipe: mpirun was not started to report to a parent", path)};
  }
  // Non-blocking was for opening alone: a pipe whose reader is gone must not hang the rank.
  ::fcntl(pipe, F_SETFL, ::fcntl(pipe, F_GETFL) & ~O_NONBLOCK);
  return pipe;
}

}  // namespace gauntlet::ranks
