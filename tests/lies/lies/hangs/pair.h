// Does the run go on after a side that never returns?
#pragma once
#include "tests/lies/params.h"

namespace gauntlet::lies::hangs {

using lies::Params;

}  // namespace gauntlet::lies::hangs
