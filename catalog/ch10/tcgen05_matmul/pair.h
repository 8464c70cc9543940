// What do two SMs gain that multiply as one?
#pragma once

namespace gauntlet::ch10::tcgen05_matmul {

struct Params {
  const float* a;  // [m, k]
  const float* b;  // [n, k], as the weights of a linear layer are stored
  float* c;        // [m, n]
  int m;
  int n;
  int k;
};

}  // namespace gauntlet::ch10::tcgen05_matmul
