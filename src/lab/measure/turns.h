// Taking turns: one block of samples of all sides, so that whatever the machine does meanwhile
// meets them alike. Pairs, labs and the study measure by it.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>

#include "core/expected.h"
#include "core/machine/nvml.h"
#include "core/random.h"
#include "lab/records/result.h"
#include "stats/blocks.h"

namespace gauntlet::lab::inline measure {

/// Takes one sample of a side in a half of the block: ns of one run, or an error that ends the
/// measuring.
using TakeSample = std::function<Expected<double>(std::size_t side, int half)>;
/// Clocks, power and throttling now; nothing where there are no sensors.
using ReadSensors = std::function<std::optional<GpuState>()>;

/// Samples every side in a random order, then again in its mirror image: ABBA or BAAB by chance for
/// two. What disturbs at the rate of the blocks themselves (another process that takes turns with
/// this one) would hit the same side in every block if the order were fixed. The sensors are read
/// once the block is over and noted in `conditions`; a block during thermal slowdown is dropped
/// whole, counted, and not returned.
Expected<std::optional<stats::Block>> take_block(std::size_t sides, Random& random,
                                                 const TakeSample& take_sample,
                                                 const ReadSensors& read_sensors,
                                                 Conditions& conditions);

}  // namespace gauntlet::lab::inline measure
