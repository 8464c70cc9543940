// What does a tile of the result in registers save a product whose operands are tiled already?
#pragma once

namespace gauntlet::ch09::register_tiling {

struct Params {
  const float* a;  // [m, k]
  const float* b;  // [k, n]
  float* c;        // [m, n]
  int m;
  int n;
  int k;
};

}  // namespace gauntlet::ch09::register_tiling
