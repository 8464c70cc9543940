// Does the run go on after a side that crashes?
#pragma once
#include "tests/lies/params.h"

namespace gauntlet::lies::crashes {

using lies::Params;

}  // namespace gauntlet::lies::crashes
