#include "tests/lies/lies/allocates/pair.h"

#include "tests/lies/scale_pair.h"

namespace gauntlet::lies::allocates {

lab::Pair<Params> pair() { return scale_pair(); }

}  // namespace gauntlet::lies::allocates
