// From three nested loops to the speed of the library: what does each step of a matrix product on
// tensor cores buy?
#pragma once
#include "core/narrow_floats.h"

namespace gauntlet::labs::matmul_ladder {

struct Params {
  const Bf16* a;  // [m, k]
  const Bf16* b;  // [n, k], as the weights of a linear layer are stored
  Bf16* c;        // [m, n]
  int m;
  int n;
  int k;
};

}  // namespace gauntlet::labs::matmul_ladder
