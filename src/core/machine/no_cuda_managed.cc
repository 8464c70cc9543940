// Without a toolkit there is no managed memory to move; a pair that asks was run by mistake.
#include "core/check.h"
#include "core/cuda/managed.h"

namespace gauntlet {

void move_pages_to_host(const void*, std::size_t) { fail("built without CUDA: no managed memory"); }

}  // namespace gauntlet
