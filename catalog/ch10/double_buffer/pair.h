// What does it gain to load the next tiles while these are multiplied?
#pragma once

namespace gauntlet::ch10::double_buffer {

struct Params {
  const float* a;  // [m, k]
  const float* b;  // [n, k], as the weights of a linear layer are stored
  float* c;        // [m, n]
  int m;
  int n;
  int k;
};

}  // namespace gauntlet::ch10::double_buffer
