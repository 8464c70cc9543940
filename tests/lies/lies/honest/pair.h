// The control: does a pair that does not lie pass?
#pragma once
#include "tests/lies/params.h"

namespace gauntlet::lies::honest {

using lies::Params;

}  // namespace gauntlet::lies::honest
