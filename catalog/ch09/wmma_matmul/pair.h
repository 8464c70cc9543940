// What do tensor cores buy a product that tiles shared memory and registers already?
#pragma once

namespace gauntlet::ch09::wmma_matmul {

struct Params {
  const float* a;  // [m, k]
  const float* b;  // [n, k], as the weights of a linear layer are stored
  float* c;        // [m, n]
  int m;
  int n;
  int k;
};

}  // namespace gauntlet::ch09::wmma_matmul
