// What does a second tile of sums in tensor memory gain?
#pragma once

namespace gauntlet::ch10::tmem_triple_overlap {

struct Params {
  const float* a;  // [m, k]
  const float* b;  // [n, k], as the weights of a linear layer are stored
  float* c;        // [m, n]
  int m;
  int n;
  int k;
};

}  // namespace gauntlet::ch10::tmem_triple_overlap
