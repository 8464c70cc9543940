// What does it gain when two warpgroups take turns at multiplying and storing?
#pragma once

namespace gauntlet::ch10::warp_pingpong {

struct Params {
  const float* a;  // [m, k]
  const float* b;  // [n, k], as the weights of a linear layer are stored
  float* c;        // [m, n]
  int m;
  int n;
  int k;
};

}  // namespace gauntlet::ch10::warp_pingpong
