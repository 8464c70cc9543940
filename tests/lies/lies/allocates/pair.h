// Does the run go on after a side that takes all memory it can get?
#pragma once
#include "tests/lies/params.h"

namespace gauntlet::lies::allocates {

using lies::Params;

}  // namespace gauntlet::lies::allocates
