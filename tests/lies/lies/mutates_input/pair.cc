#include "tests/lies/lies/mutates_input/pair.h"

#include "tests/lies/scale_pair.h"

namespace gauntlet::lies::mutates_input {

lab::Pair<Params> pair() { return scale_pair(); }

}  // namespace gauntlet::lies::mutates_input
