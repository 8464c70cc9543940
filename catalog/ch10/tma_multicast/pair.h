// What does it save when one load fills the shared memory of two blocks?
#pragma once

namespace gauntlet::ch10::tma_multicast {

struct Params {
  const float* a;  // [m, k]
  const float* b;  // [n, k], as the weights of a linear layer are stored
  float* c;        // [m, n]
  int m;
  int n;
  int k;
};

}  // namespace gauntlet::ch10::tma_multicast
