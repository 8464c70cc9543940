// The ladder of a bf16 product on a GPU whose tensor cores keep their sums in a memory of their
// own.
#pragma once
#include "catalog/labs/matmul_ladder/lab.h"

namespace gauntlet::labs::matmul_ladder_blackwell {

using matmul_ladder::Params;

}  // namespace gauntlet::labs::matmul_ladder_blackwell
