// Is a fast side with a wrong result found?
#pragma once
#include "tests/lies/params.h"

namespace gauntlet::lies::wrong_result {

using lies::Params;

}  // namespace gauntlet::lies::wrong_result
