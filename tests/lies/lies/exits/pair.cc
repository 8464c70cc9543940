#include "tests/lies/lies/exits/pair.h"

#include "tests/lies/scale_pair.h"

namespace gauntlet::lies::exits {

lab::Pair<Params> pair() { return scale_pair(); }

}  // namespace gauntlet::lies::exits
