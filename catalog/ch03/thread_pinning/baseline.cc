// Threads as they are made: the scheduler places them, and may move them.
#include <memory>

#include "catalog/ch03/thread_pinning/pair.h"
#include "catalog/ch03/thread_pinning/workers.h"
#include "lab/author/counted.h"
#include "lab/author/side.h"

namespace gauntlet::ch03::thread_pinning::cpu {

lab::Side baseline(const Params& p, const lab::Cpu&) {
  const auto workers = std::make_shared<Workers>(p, [](std::int64_t) {
    // What they would have inherited is the measuring thread's pin.
    cpu_set_t anywhere;
    CPU_ZERO(&anywhere);
    for (const int cpu : allowed_cpus()) CPU_SET(cpu, &anywhere);
    sched_setaffinity(0, sizeof(anywhere), &anywhere);
  });
  lab::Side side = lab::counted(lab::migrations(), [workers] { workers->run(); });
  side.helpers = lab::Helpers::threads;
  return side;
}

}  // namespace gauntlet::ch03::thread_pinning::cpu
