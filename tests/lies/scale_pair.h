// The declarations that planted lies share.
#pragma once
#include <chrono>
#include <cstdint>

#include "lab/author/pair.h"
#include "tests/lies/params.h"

namespace gauntlet::lies {

/// What a lie of out = 2·in says about itself beyond its sides.
struct Pretence {
  lab::Witness witness = lab::Witness::none("a planted lie");
  double declared = 1;               // times the bytes that the work needs
  double read = 1;                   // share of the input that the output depends on
  std::int64_t cpu_count = 1 << 15;  // elements
  lab::Cost::Level level = lab::Cost::Level::dram;
  std::chrono::milliseconds check{0};  // that the reference takes
};

lab::Pair<Params> scale_pair(const Pretence& pretence = {});
/// C = A·B; `operands` is the precision that is claimed.
lab::Pair<ProductParams> product_pair(DType operands);

}  // namespace gauntlet::lies
