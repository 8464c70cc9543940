// Attention in a tree of guesses, whose branches lie among each other: the obvious twin of what
// gathers a path first.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/ref/ops.h"

namespace gauntlet::kernels::ref {

/// `seen`: rows of keys and values that the query sees, in the order of their positions, its own
/// last. The window counts positions.
std::vector<double> tree_attention(const AttentionInput& input, std::span<const std::int64_t> seen);

}  // namespace gauntlet::kernels::ref
