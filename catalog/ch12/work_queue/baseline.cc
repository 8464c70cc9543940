// A static split: every worker has one range of as many items.
#include "catalog/ch12/work_queue/pair.h"
#include "core/os/threads.h"
#include "lab/author/counts/worker_times.h"

namespace gauntlet::ch12::work_queue::cpu {

lab::Side baseline(const Params& p, const lab::Cpu& cpu) {
  const auto times = std::make_shared<lab::WorkerTimes>(cpu.pool);
  const std::int64_t workers = cpu.pool->size();
  lab::Side side = lab::counted(lab::last_worker(times), [p, times, workers] {
    times->run([&](int worker) {
      const std::int64_t end = p.items * (worker + 1) / workers;
      for (std::int64_t item = p.items * worker / workers; item < end; ++item) {
        p.out[item] = continue_sequence(p, item);
      }
    });
  });
  side.facts = {{"threads", static_cast<double>(workers)}};
  return side;
}

}  // namespace gauntlet::ch12::work_queue::cpu
