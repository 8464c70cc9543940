// One read at a time: the next is asked for when this one is there.
#include "catalog/ch05/io_uring/pair.h"
#include "core/check.h"
#include "lab/author/counted.h"
#include "lab/author/stored.h"

namespace gauntlet::ch05::io_uring::cpu {

lab::Side baseline(const Params& p, const lab::Cpu&) {
  const int file = p.stored->file().direct();
  return lab::reading_cold(
      p.stored, lab::counted(lab::reads_in_flight(file), [p, file] {
        for (std::int64_t i = 0; i < p.records; ++i) {
          check(bool(read_fully(
                    file, {p.out + i * p.record_bytes, static_cast<std::size_t>(p.record_bytes)},
                    p.start[i] * kDirectBytes)),
                "a record can be read");
        }
      }));
}

}  // namespace gauntlet::ch05::io_uring::cpu
