// Takes and touches memory until it is stopped.
#include <vector>

#include "lab/author/side.h"
#include "tests/lies/lies/allocates/pair.h"

namespace gauntlet::lies::allocates::cpu {

lab::Side optimized(const Params&, const lab::Cpu&) {
  return [] {
    std::vector<std::vector<char>> hoard;
    while (true) hoard.emplace_back(std::size_t{16} << 20, 'x');
  };
}

}  // namespace gauntlet::lies::allocates::cpu
