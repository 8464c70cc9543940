// What do tensor copies save a pipeline that asynchronous copies fill already?
#pragma once

namespace gauntlet::ch10::tma_2d_pipeline {

struct Params {
  const float* a;  // [m, k]
  const float* b;  // [n, k], as the weights of a linear layer are stored
  float* c;        // [m, n]
  int m;
  int n;
  int k;
};

}  // namespace gauntlet::ch10::tma_2d_pipeline
