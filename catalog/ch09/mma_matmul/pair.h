// What does it buy to place the fragments of tensor cores by hand?
#pragma once

namespace gauntlet::ch09::mma_matmul {

struct Params {
  const float* a;  // [m, k]
  const float* b;  // [n, k], as the weights of a linear layer are stored
  float* c;        // [m, n]
  int m;
  int n;
  int k;
};

}  // namespace gauntlet::ch09::mma_matmul
