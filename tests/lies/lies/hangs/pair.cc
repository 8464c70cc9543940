#include "tests/lies/lies/hangs/pair.h"

#include "tests/lies/scale_pair.h"

namespace gauntlet::lies::hangs {

lab::Pair<Params> pair() { return scale_pair(); }

}  // namespace gauntlet::lies::hangs
