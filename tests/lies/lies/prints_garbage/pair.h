// Does a side that floods its output with garbage disturb the measurement of honest work?
#pragma once
#include "tests/lies/params.h"

namespace gauntlet::lies::prints_garbage {

using lies::Params;

}  // namespace gauntlet::lies::prints_garbage
