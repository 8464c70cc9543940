// Where the pages of managed memory live. no_cuda_managed.cc answers where there is no toolkit.
#pragma once
#include <cstddef>

namespace gauntlet {

/// Moves the pages to host memory and waits until they are there.
void move_pages_to_host(const void* managed, std::size_t bytes);

}  // namespace gauntlet
