#include "tests/lies/lies/equal_sides/pair.h"

#include "tests/lies/scale_pair.h"

namespace gauntlet::lies::equal_sides {

lab::Pair<Params> pair() { return scale_pair(); }

}  // namespace gauntlet::lies::equal_sides
