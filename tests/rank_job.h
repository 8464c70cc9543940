// A program as the ranks of one job under mpirun, in a folder of its own for what MPI shares, and
// what is left of it afterwards.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "tests/program.h"

namespace gauntlet::tests {

class RankJob {
 public:
  /// Orphans of the job fall to this process, which reaps them. Waits until every rank is there.
  RankJob(int ranks, const std::vector<std::string>& argv);
  ~RankJob();
  RankJob(const RankJob&) = delete;
  RankJob& operator=(const RankJob&) = delete;

  Program& program() { return program_; }
  pid_t process(int rank) const { return ranks_.at(static_cast<std::size_t>(rank)); }
  /// mpirun's end, with all that the ranks have said.
  Outcome wait() { return program_.wait(); }

  /// Once mpirun has ended: ranks that still run, files in the folder. Empty: nothing is left.
  std::string left_behind();

 private:
  TemporaryFolder folder_;
  std::string tag_;
  Program program_;
  std::vector<pid_t> ranks_;
};

}  // namespace gauntlet::tests
