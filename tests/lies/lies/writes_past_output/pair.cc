#include "tests/lies/lies/writes_past_output/pair.h"

#include "tests/lies/scale_pair.h"

namespace gauntlet::lies::writes_past_output {

lab::Pair<Params> pair() { return scale_pair(); }

}  // namespace gauntlet::lies::writes_past_output
