// Parts are read into the slots of a page-locked ring, which are copied to the device meanwhile.
#include <cuda_runtime.h>

#include <array>
#include <memory>

#include "catalog/ch05/pinned_ring/pair.h"
#include "core/cuda/memory.h"
#include "core/cuda/registered_pages.h"
#include "lab/author/stored.h"

namespace gauntlet::ch05::pinned_ring::cuda {
namespace {

constexpr std::int64_t kSlots = 4;

struct Ring {
  explicit Ring(std::int64_t slot_bytes) : memory(kSlots * slot_bytes) {}
  RegisteredPages memory;                 // [kSlots, slot_bytes]
  std::array<CudaEvent, kSlots> drained;  // a slot was copied out of
};

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  const int file = p.stored->file().cached();
  const auto ring = std::make_shared<Ring>(p.part_bytes);
  const auto bytes = static_cast<std::size_t>(p.part_bytes);
  lab::Side side(
      [p, file, ring, bytes, stream = cuda.stream] {
        for (std::int64_t i = 0; i < p.parts; ++i) {
          const std::int64_t slot = i % kSlots;
          unsigned char* const buffer = ring->memory.data() + slot * p.part_bytes;
          const CudaEvent& drained = ring->drained[static_cast<std::size_t>(slot)];
          drained.wait();
          check(bool(read_fully(file, {buffer, bytes}, p.start[i] * kDirectBytes)),
                "a part can be read");
          cuda_check(cudaMemcpyAsync(p.out + i * p.part_bytes, buffer, bytes,
                                     cudaMemcpyHostToDevice, stream));
          drained.record(stream);
        }
      },
      {{"page_locked", page_locked(ring->memory.data())}});
  return lab::reading_hot(p.stored, std::move(side));
}

}  // namespace gauntlet::ch05::pinned_ring::cuda
