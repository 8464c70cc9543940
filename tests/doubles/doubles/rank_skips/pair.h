// Is a rank found out that leaves its part to nobody?
#pragma once
#include "tests/doubles/doubles/rank_sum/pair.h"

namespace gauntlet::doubles::rank_skips {

using rank_sum::Params;

}  // namespace gauntlet::doubles::rank_skips
