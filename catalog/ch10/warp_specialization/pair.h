// What does it gain to leave the loading to a warp of its own?
#pragma once

namespace gauntlet::ch10::warp_specialization {

struct Params {
  const float* a;  // [m, k]
  const float* b;  // [n, k], as the weights of a linear layer are stored
  float* c;        // [m, n]
  int m;
  int n;
  int k;
};

}  // namespace gauntlet::ch10::warp_specialization
