// What the figures of a study mean, by rules that can be tested with made-up numbers: whether two
// ways of measuring an option agree, and what stands in the way next.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "stats/interval.h"

namespace gauntlet::study::inline fidelity {

/// One option, switched off in the full stack, beside the layer it came with.
struct Company {
  std::string option;
  stats::Interval worth;  // full stack over the stack without it
  int layer = 0;
  stats::Interval layer_gain;             // over the layer before
  std::vector<std::string> others;        // options of the same layer
  std::vector<std::string> plan_without;  // lines of the plan that changed with it
};
enum class Sign { same, undecided, opposite };
const char* name_of(Sign sign);
struct SignCheck {
  Sign sign = Sign::same;
  std::string sentence;
};
/// The same verdict; or one interval holds 1 and has no sign to compare; or a gain against a loss.
/// Where they are not the same, the sentence says why.
SignCheck check_sign(const Company& company);

/// A part of a step and the least time it could take.
struct StepPart {
  std::string name;
  double us = 0;
  double floor_us = 0;   // 0: unknown
  std::string bound_by;  // of the floor: memory, compute
};

enum class Bottleneck { memory, compute, launch, host };
const char* name_of(Bottleneck bottleneck);

struct Diagnosis {
  Bottleneck bottleneck = Bottleneck::memory;
  std::string part;  // the one with the most time above its floor
  std::string sentence;
  std::vector<std::string> targets;  // of the catalogue, that address it
};
/// Host when a quarter of the step or more is spent outside the model; launch when a quarter or
/// more is spent between kernels; otherwise what bounds the parts, weighed by their floors.
Diagnosis diagnose(const std::vector<StepPart>& parts, double idle_us, double host_us);

/// The catalogue's targets that address a bottleneck.
std::vector<std::string> targets_for(Bottleneck bottleneck);

}  // namespace gauntlet::study::inline fidelity
