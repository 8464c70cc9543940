// A queue of reads that one thread keeps full.
#include "catalog/ch05/io_uring/queued.h"
#include "core/check.h"
#include "lab/author/counted.h"
#include "lab/author/stored.h"

namespace gauntlet::ch05::io_uring::cpu {

lab::Side optimized(const Params& p, const lab::Cpu&) {
  return lab::reading_cold(
      p.stored,
      lab::counted(lab::reads_in_flight(p.stored->file().direct()), [p, ring = open_ring()] {
        check(read_records(p, *ring, 0, p.records), "records can be read");
      }));
}

}  // namespace gauntlet::ch05::io_uring::cpu
