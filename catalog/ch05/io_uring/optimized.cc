// A queue of reads: as soon as one is there another is asked for.
#include <memory>
#include <utility>

#include "catalog/ch05/io_uring/pair.h"
#include "core/check.h"
#include "core/storage/io_ring.h"
#include "lab/author/counted.h"
#include "lab/author/stored.h"

namespace gauntlet::ch05::io_uring::cpu {
namespace {

// Enough for a disk that answers in 100 us and moves 256 KiB in 60 us, several times over.
constexpr unsigned kDepth = 32;

}  // namespace

lab::Side optimized(const Params& p, const lab::Cpu&) {
  const int file = p.stored->file().direct();
  auto opened = IoRing::open(kDepth);
  if (!opened) fail(opened.error().message);
  const std::shared_ptr<IoRing> ring = std::move(*opened);
  return lab::reading_cold(
      p.stored, lab::counted(lab::reads_in_flight(file), [p, file, ring] {
        const std::uint64_t before = ring->completions();
        std::int64_t asked = 0, answered = 0;
        while (answered < p.records) {
          for (; asked < p.records && asked - answered < kDepth; ++asked) {
            ring->prepare({.file = file,
                           .to = p.out + asked * p.record_bytes,
                           .bytes = p.record_bytes,
                           .offset = p.start[asked] * kDirectBytes});
          }
          check(bool(ring->submit_and_wait(1)), "reads can be handed over");
          for (RingCompletion completion; ring->take(completion); ++answered) {
            check(completion.result == p.record_bytes, "a record can be read");
          }
        }
        check(ring->completions() - before == static_cast<std::uint64_t>(p.records),
              "the kernel completed every read");
      }));
}

}  // namespace gauntlet::ch05::io_uring::cpu
