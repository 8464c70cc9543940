// What clients do to a server: ask well, go away, read slowly, stay silent, send nonsense. Each act
// says whether the server answered as it has to.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/random.h"

namespace gauntlet::tests {

/// What the server under test was told.
struct Limits {
  std::size_t header_bytes = 16 << 10;
  std::size_t body_bytes = 1 << 20;
};

struct Scene {
  std::uint16_t port = 0;
  Limits limits;
  Random& random;
};

struct Act {
  const char* name;
  int weight;                         // of how many are played, its share
  std::string (*play)(Scene& scene);  // empty when all was well; otherwise what was not
};

const std::vector<Act>& all_acts();

}  // namespace gauntlet::tests
