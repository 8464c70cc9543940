// Past the page cache: the disk fills the buffer itself, which O_DIRECT wants aligned.
#include <algorithm>

#include "catalog/ch05/direct_io/pair.h"
#include "core/check.h"
#include "lab/author/stored.h"

namespace gauntlet::ch05::direct_io::cpu {
namespace {

constexpr std::int64_t kRequestBytes = std::int64_t{8} << 20;

}  // namespace

lab::Side optimized(const Params& p, const lab::Cpu&) {
  const int file = p.stored->file().direct();
  return lab::reading_cold(p.stored, [p, file] {
    for (std::int64_t shard = 0; shard < p.shards; ++shard) {
      for (std::int64_t at = 0; at < p.shard_bytes; at += kRequestBytes) {
        const std::int64_t count = std::min(kRequestBytes, p.shard_bytes - at);
        check(bool(read_fully(file,
                              {p.out + shard * p.shard_bytes + at, static_cast<std::size_t>(count)},
                              p.start[shard] * kDirectBytes + at)),
              "a shard can be read");
      }
    }
  });
}

}  // namespace gauntlet::ch05::direct_io::cpu
