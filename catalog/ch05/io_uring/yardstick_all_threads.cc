// What the disk gives of such records at this moment: every thread keeps a queue of its own full.
#include <algorithm>
#include <atomic>
#include <vector>

#include "catalog/ch05/io_uring/queued.h"
#include "core/check.h"
#include "core/os/threads.h"
#include "lab/author/stored.h"

namespace gauntlet::ch05::io_uring::cpu {
namespace {

constexpr int kMostRings = 16;  // more have nothing to add, and each set of buffers opens as many

}  // namespace

lab::Side all_threads(const Params& p, const lab::Cpu& cpu) {
  std::vector<std::shared_ptr<IoRing>> rings;
  const int readers = std::min(cpu.pool->size(), kMostRings);
  for (int reader = 0; reader < readers; ++reader) rings.push_back(open_ring());
  return lab::reading_cold(
      p.stored, lab::Side([p, rings, readers, pool = cpu.pool] {
        std::atomic<bool> all_read = true;  // what a worker throws would end the process
        pool->run([&](int worker) {
          if (worker >= readers) return;
          const std::int64_t share = (p.records + readers - 1) / readers;
          const std::int64_t begin = std::min(worker * share, p.records);
          if (!read_records(p, *rings[worker], begin, std::min(begin + share, p.records))) {
            all_read = false;
          }
        });
        check(all_read, "records can be read");
      }));
}

}  // namespace gauntlet::ch05::io_uring::cpu
