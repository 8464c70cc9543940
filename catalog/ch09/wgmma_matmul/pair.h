// What does it buy when tensor cores fetch their operands themselves?
#pragma once

namespace gauntlet::ch09::wgmma_matmul {

struct Params {
  const float* a;  // [m, k]
  const float* b;  // [n, k], as the weights of a linear layer are stored
  float* c;        // [m, n]
  int m;
  int n;
  int k;
};

}  // namespace gauntlet::ch09::wgmma_matmul
