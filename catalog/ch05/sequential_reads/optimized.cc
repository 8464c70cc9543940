// Each shard is read whole; its samples are drawn from memory.
#include "catalog/ch05/sequential_reads/pair.h"
#include "core/check.h"
#include "lab/author/counted.h"
#include "lab/author/stored.h"

namespace gauntlet::ch05::sequential_reads::cpu {

lab::Side optimized(const Params& p, const lab::Cpu&) {
  const int file = p.stored->file().direct();
  return lab::reading_cold(
      p.stored, lab::counted(lab::read_calls(), [p, file] {
        for (std::int64_t shard = 0; shard < p.shards; ++shard) {
          check(bool(read_fully(
                    file, {p.out + shard * p.shard_bytes, static_cast<std::size_t>(p.shard_bytes)},
                    p.start[shard] * kDirectBytes)),
                "a shard can be read");
        }
      }));
}

}  // namespace gauntlet::ch05::sequential_reads::cpu
