// Steps and their results as bytes, between ranks of one job: the same program on each.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "core/expected.h"
#include "engine/steps/step_data.h"

namespace gauntlet::engine::inline on_ranks {

std::vector<std::byte> to_bytes(const StepData& step);
/// Holds an error where the bytes are not one whole step.
Expected<StepData> step_of(std::span<const std::byte> bytes);

std::vector<std::byte> to_bytes(const std::vector<RowResult>& results);
Expected<std::vector<RowResult>> results_of(std::span<const std::byte> bytes);

}  // namespace gauntlet::engine::inline on_ranks
