// Does the lab hold a ladder whose library is not here: the rungs measured, the library named?
#pragma once
#include "tests/doubles/labs/scale_ladder/lab.h"

namespace gauntlet::labs::lone_ladder {

using scale_ladder::Params;

}  // namespace gauntlet::labs::lone_ladder
