// Ranks as processes under MPI: OpenMPI, opened at run time.
#pragma once
#include <memory>
#include <string>

#include "core/ranks/group.h"

namespace gauntlet::ranks {

/// The library's path where this process could join a job by it; the error names the package.
Expected<std::string> find_mpi_library();

/// Joins the job that mpirun started this process for; once per process. All calls of the group
/// come from the thread that joined. The group waits with a time limit: where a rank is lost or
/// hangs, a call fails with one sentence, the process ends as its program sees fit, and mpirun,
/// seeing it end without leaving the job, ends the others.
Expected<std::unique_ptr<Group>> join_mpi(const GroupOptions& options = {});

}  // namespace gauntlet::ranks
