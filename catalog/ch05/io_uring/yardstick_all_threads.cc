// What the disk gives of such records at this moment: every thread keeps a queue of its own full.
#include <algorithm>
#include <vector>

#include "catalog/ch05/io_uring/queued.h"
#include "core/os/threads.h"
#include "lab/author/stored.h"

namespace gauntlet::ch05::io_uring::cpu {

lab::Side all_threads(const Params& p, const lab::Cpu& cpu) {
  std::vector<std::shared_ptr<IoRing>> rings;
  for (int worker = 0; worker < cpu.pool->size(); ++worker) rings.push_back(open_ring());
  return lab::reading_cold(p.stored, lab::Side([p, rings, pool = cpu.pool] {
    pool->run([&](int worker) {
      const std::int64_t share = (p.records + pool->size() - 1) / pool->size();
      const std::int64_t begin = std::min(worker * share, p.records);
      read_records(p, *rings[worker], begin, std::min(begin + share, p.records));
    });
  }));
}

}  // namespace gauntlet::ch05::io_uring::cpu
