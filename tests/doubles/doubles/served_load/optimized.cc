// All requests go out at once.
#include "lab/author/side.h"
#include "tests/doubles/doubles/served_load/pair.h"
#include "tests/doubles/doubles/served_load/server.h"

namespace gauntlet::doubles::served_load::cpu {

lab::Side optimized(const Params& p, const lab::Cpu&) {
  p.server->start(p.requests);
  lab::Side side([p] { p.server->answer(p, p.answers, p.requests); });
  side.facts = {{"in_flight", static_cast<double>(p.requests)}};
  side.helpers = lab::Helpers::processes;
  return side;
}

}  // namespace gauntlet::doubles::served_load::cpu
