// What the disk gives at this moment: every thread reads, past the page cache.
#include "catalog/ch05/direct_io/pair.h"
#include "lab/author/stored.h"

namespace gauntlet::ch05::direct_io::cpu {

lab::Side all_threads(const Params& p, const lab::Cpu& cpu) {
  return lab::reading_by_all(
      p.stored, {.start = p.start, .count = p.shards, .bytes = p.shard_bytes, .out = p.out},
      *cpu.pool);
}

}  // namespace gauntlet::ch05::direct_io::cpu
