#include "cli/serving/allocator.h"

#include <malloc.h>

namespace gauntlet::cli {

void return_freed_memory() {
#if defined(__GLIBC__)
  constexpr int kMappedBytes = 1 << 20;
  constexpr int kKeptBytes = 2 << 20;
  mallopt(M_MMAP_THRESHOLD, kMappedBytes);
  mallopt(M_TRIM_THRESHOLD, kKeptBytes);
#endif
}

}  // namespace gauntlet::cli
