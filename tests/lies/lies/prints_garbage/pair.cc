#include "tests/lies/lies/prints_garbage/pair.h"

#include "tests/lies/scale_pair.h"

namespace gauntlet::lies::prints_garbage {

lab::Pair<Params> pair() { return scale_pair(); }

}  // namespace gauntlet::lies::prints_garbage
