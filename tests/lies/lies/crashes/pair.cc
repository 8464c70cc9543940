#include "tests/lies/lies/crashes/pair.h"

#include "tests/lies/scale_pair.h"

namespace gauntlet::lies::crashes {

lab::Pair<Params> pair() { return scale_pair(); }

}  // namespace gauntlet::lies::crashes
