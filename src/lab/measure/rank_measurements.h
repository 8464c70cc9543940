// One measurement of several ranks: each rank verifies its own outputs and observes its own part,
// and what any of them found holds for all.
#pragma once
#include <vector>

#include "lab/measure/measure.h"

namespace gauntlet::lab::inline measure {

/// Times, blocks and facts are rank 0's, since all ranks have the same; errors are the largest,
/// checks and bytes add up, outcomes are averaged, and distributions joined block by block. A
/// refusal is that of the first rank that found something itself, and names it where not all did.
Measurement merge_ranks(const std::vector<Measurement>& ranks);

}  // namespace gauntlet::lab::inline measure
