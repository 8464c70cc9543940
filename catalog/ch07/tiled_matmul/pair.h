// What does a tile of the operands, kept close and reused, save a matrix product?
#pragma once

namespace gauntlet::ch07::tiled_matmul {

struct Params {
  const float* a;  // [m, k]
  const float* b;  // [k, n]
  float* c;        // [m, n]
  int m;
  int n;
  int k;
};

}  // namespace gauntlet::ch07::tiled_matmul
