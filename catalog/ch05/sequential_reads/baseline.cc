// Each page is read when its sample is drawn.
#include "catalog/ch05/sequential_reads/pair.h"
#include "core/check.h"
#include "lab/author/counted.h"
#include "lab/author/stored.h"

namespace gauntlet::ch05::sequential_reads::cpu {

lab::Side baseline(const Params& p, const lab::Cpu&) {
  const int file = p.stored->file().direct();
  const std::int64_t shard_pages = p.shard_bytes / kDirectBytes;
  return lab::reading_cold(
      p.stored, lab::counted(lab::read_calls(), [p, file, shard_pages] {
        for (std::int64_t i = 0; i < p.shards * shard_pages; ++i) {
          const std::int64_t page = p.order[i];
          const std::int64_t from = p.start[page / shard_pages] + page % shard_pages;
          check(bool(read_fully(file, {p.out + page * kDirectBytes, kDirectBytes},
                                from * kDirectBytes)),
                "a page can be read");
        }
      }));
}

}  // namespace gauntlet::ch05::sequential_reads::cpu
