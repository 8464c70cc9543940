// Parts are read into a page-locked ring of the host, and copied to the device from there while the
// next one is read.
#include <cuda_runtime.h>

#include <array>
#include <memory>

#include "catalog/ch05/direct_storage/pair.h"
#include "core/cuda/memory.h"
#include "core/cuda/registered_pages.h"
#include "lab/author/counted.h"
#include "lab/author/stored.h"

namespace gauntlet::ch05::direct_storage::cuda {
namespace {

constexpr std::int64_t kSlots = 4;

struct Ring {
  explicit Ring(std::int64_t slot_bytes) : memory(kSlots * slot_bytes) {}
  RegisteredPages memory;                 // [kSlots, slot_bytes]
  std::array<CudaEvent, kSlots> drained;  // a slot was copied out of
};

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  const int file = p.stored->file().direct();
  const auto ring = std::make_shared<Ring>(p.part_bytes);
  const auto bytes = static_cast<std::size_t>(p.part_bytes);
  return lab::reading_cold(
      p.stored, lab::counted(lab::copied_bytes(), [p, file, ring, bytes, stream = cuda.stream] {
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
      }));
}

}  // namespace gauntlet::ch05::direct_storage::cuda
