// Counted sides: outcomes that somebody else keeps count of while a side runs (a pool its forks,
// the system its CPU time), so that a witness does not rest on what the side says of itself.
#pragma once
#include <functional>
#include <string>

#include "lab/author/side.h"

namespace gauntlet::lab::inline author {

struct Count {
  std::string name;               // of the outcome
  std::function<double()> total;  // read before and after every run
  std::function<double()> per;    // likewise, what the growth is divided by; empty: the runs
};

/// A side whose outcome is how much the total grew over its runs since it was last asked, per run
/// or per `per`. Without a run there is no outcome.
Side counted(Count count, std::function<void()> run);

/// "forks": how often the pool is forked per run.
Count forks_of(const ThreadPool* pool);
/// "working_threads": CPU time of all threads of this process per CPU time of the one that runs the
/// side. A loaded machine slows both alike.
Count working_threads();

}  // namespace gauntlet::lab::inline author
