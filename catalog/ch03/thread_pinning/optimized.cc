// The same threads, each on a CPU of its own.
#include <memory>

#include "catalog/ch03/thread_pinning/pair.h"
#include "catalog/ch03/thread_pinning/workers.h"
#include "lab/author/counted.h"
#include "lab/author/side.h"

namespace gauntlet::ch03::thread_pinning::cpu {

lab::Side optimized(const Params& p, const lab::Cpu&) {
  const auto workers = std::make_shared<Workers>(p, [](std::int64_t worker) {
    const std::vector<int> cpus = allowed_cpus();
    pin_this_thread(cpus[static_cast<std::size_t>(worker) % cpus.size()]);
  });
  lab::Side side = lab::counted(lab::migrations(), [workers] { workers->run(); });
  side.helpers = lab::Helpers::threads;
  return side;
}

}  // namespace gauntlet::ch03::thread_pinning::cpu
