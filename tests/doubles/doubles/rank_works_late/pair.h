// Is a rank found out that works on after its clock stopped?
#pragma once
#include "tests/doubles/doubles/rank_sum/pair.h"

namespace gauntlet::doubles::rank_works_late {

using rank_sum::Params;

}  // namespace gauntlet::doubles::rank_works_late
