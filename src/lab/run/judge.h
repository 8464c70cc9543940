// Judging: from what the processes of a target measured to its result, status and reason.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "lab/ceilings/ceilings.h"
#include "lab/measure/measure.h"
#include "lab/records/result.h"
#include "lab/run/worker.h"

namespace gauntlet::lab::inline run {

struct Evidence {
  std::vector<Measurement> processes;
  std::optional<ProfileOutcome> profile;  // when --profile is not none
  std::optional<Ceilings> ceilings;
};

/// Metadata of a result before anything ran.
Result describe(const Target& target, BackendKind backend, const Knobs& knobs);

/// The GPU was too hot throughout a process: it says nothing, neither good nor bad.
bool is_too_hot(const Measurement& process);

/// Wrong for the one reason that better ceilings could explain.
bool is_above_ceiling(const Result& result);

/// Fills in estimates, metrics, witnesses, ceilings and the status passed, no_gain or wrong.
void judge(Result& result, const Target& target, const Knobs& knobs, const Evidence& evidence);

}  // namespace gauntlet::lab::inline run
