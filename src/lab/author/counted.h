// Counted sides: outcomes that somebody else keeps count of while a side runs (a pool its forks,
// the system its CPU time), so that a witness does not rest on what the side says of itself.
// The counts named here are the lab's: nobody else can give an outcome their names.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "lab/author/side.h"

namespace gauntlet::lab::inline author {

/// The mark of a count that the lab made. A pair's own has none.
class LabSeal {
 public:
  LabSeal() = default;
  bool is_set() const { return set_; }

 private:
  friend struct LabCounts;
  bool set_ = false;
};

struct Count {
  std::string name;               // of the outcome
  std::function<double()> total;  // read before and after every run
  std::function<double()> per;    // likewise, what the growth is divided by; empty: the runs
  LabSeal seal = {};
};

/// A side whose outcome is how much the total grew over its runs since it was last asked, per run
/// or per `per`. Without a run there is no outcome.
Side counted(Count count, std::function<void()> run);
/// The same of several totals, an outcome each.
Side counted(std::vector<Count> counts, std::function<void()> run);

/// "forks": how often the pool is forked per run.
Count forks_of(const ThreadPool* pool);
/// "busy_cpus": CPU time of all threads of this process per time that goes by: how many of them are
/// at work at a time.
Count busy_cpus();
/// "working_threads": CPU time of all threads of this process per CPU time of the one that runs the
/// side. A loaded machine slows both alike.
Count working_threads();

/// "read_calls": read(), pread() and the like of this process, as /proc/self/io counts them.
Count read_calls();
/// "copied_bytes": what those calls copied out of files (rchar of /proc/self/io).
Count copied_bytes();
/// "migrations": how often the kernel moved a thread of this process to another CPU
/// (nr_migrations of /proc/self/task/*/sched). A kernel that does not show it leaves no outcome.
Count migrations();
/// "reads_in_flight": how many requests the block device of an open file had at a time, as its
/// driver counts them (/sys/dev/block/*/stat); those of other processes are among them.
Count reads_in_flight(int file);
/// "waiting_ms": how long the calling thread did not run.
Count waiting_ms();

}  // namespace gauntlet::lab::inline author
