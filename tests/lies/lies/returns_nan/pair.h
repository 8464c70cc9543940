// Is a NaN found, although it compares false with every bound?
#pragma once
#include "tests/lies/params.h"

namespace gauntlet::lies::returns_nan {

using lies::Params;

}  // namespace gauntlet::lies::returns_nan
