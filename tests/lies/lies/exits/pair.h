// Is a side found that ends its process with a code that says all is well?
#pragma once
#include "tests/lies/params.h"

namespace gauntlet::lies::exits {

using lies::Params;

}  // namespace gauntlet::lies::exits
