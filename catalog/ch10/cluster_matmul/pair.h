// What do clusters of four blocks save a product that share all of their tiles?
#pragma once

namespace gauntlet::ch10::cluster_matmul {

struct Params {
  const float* a;  // [m, k]
  const float* b;  // [n, k], as the weights of a linear layer are stored
  float* c;        // [m, n]
  int m;
  int n;
  int k;
};

}  // namespace gauntlet::ch10::cluster_matmul
