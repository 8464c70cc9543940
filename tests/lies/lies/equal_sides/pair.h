// Is a gain reported where both sides are the same code?
#pragma once
#include "tests/lies/params.h"

namespace gauntlet::lies::equal_sides {

using lies::Params;

}  // namespace gauntlet::lies::equal_sides
