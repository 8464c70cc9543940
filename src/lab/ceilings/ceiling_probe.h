// Probe: one way to reach a ceiling. Backends list their probes; whoever times them keeps the best.
#pragma once
#include <functional>
#include <string>

namespace gauntlet::lab::inline ceilings {

struct Probe {
  std::string ceiling;  // a name of Ceilings
  std::string method;
  double amount = 0;  // bytes moved or operations done by one run
  std::function<void()> run;
  std::function<void()> prepare = {};  // untimed, once, before the runs
};

}  // namespace gauntlet::lab::inline ceilings
