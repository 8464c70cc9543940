// How a job of several ranks starts, and how a process finds out that it is one of them.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/ranks/group.h"

namespace gauntlet::ranks {

inline constexpr const char* kOpenMpiPackages = "Debian: apt-get install openmpi-bin libopenmpi3";

/// mpirun's path; the error names the package. `path` is searched as $PATH is.
Expected<std::string> find_mpirun(const std::string& path);
Expected<std::string> find_mpirun();

struct MpiLaunch {
  std::string mpirun;  // of find_mpirun()
  int ranks = 1;
  int cpus = 1;  // this job may use
  enum class User { root, other } user = User::other;
};

/// The command that starts `argv` as the ranks of one job on this machine. Where there is a CPU for
/// each, mpirun gives each its own; otherwise they share all.
std::vector<std::string> mpirun_command(const MpiLaunch& launch,
                                        const std::vector<std::string>& argv);
/// For this user on this machine.
Expected<std::vector<std::string>> mpirun_command(int ranks, const std::vector<std::string>& argv);

/// As what this process was started, by what its starter says in the environment.
struct Start {
  enum class By { none, mpirun, pmix, slurm } by = By::none;
  int rank = 0;
  int size = 1;  // 0 where the starter does not say
};
const char* name_of(Start::By by);

using Environment = std::function<const char*(const char* variable)>;
Start started_as(const Environment& environment);
Start started_as();

/// The group this process was started for: MPI's for a rank of a job, otherwise a group of one.
Expected<std::unique_ptr<Group>> join(const GroupOptions& options = {});

/// For rank 0 of a job that was started by run_child(): the pipe to that parent. mpirun keeps
/// kMessageFd to itself and closes it in its ranks, which find it again through /proc. The caller
/// owns the descriptor.
Expected<int> open_message_pipe();

}  // namespace gauntlet::ranks
