// The checkpoint is mapped: its pages are those of the page cache.
#include <sys/mman.h>

#include "catalog/ch05/mmap_weights/pair.h"
#include "core/check.h"
#include "lab/author/counted.h"
#include "lab/author/stored.h"

namespace gauntlet::ch05::mmap_weights::cpu {

lab::Side optimized(const Params& p, const lab::Cpu&) {
  const int file = p.stored->file().cached();
  return lab::reading_hot(p.stored, lab::counted(lab::copied_bytes(), [p, file] {
                            const auto bytes = static_cast<std::size_t>(p.rows * p.columns);
                            void* weights = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file,
                                                   p.start[0] * kDirectBytes);
                            check(weights != MAP_FAILED, "a checkpoint can be mapped");
                            multiply(p, static_cast<const std::int8_t*>(weights));
                            ::munmap(weights, bytes);
                          }));
}

}  // namespace gauntlet::ch05::mmap_weights::cpu
