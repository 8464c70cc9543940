// The next request goes out when the last was answered.
#include "lab/author/side.h"
#include "tests/doubles/doubles/served_load/pair.h"
#include "tests/doubles/doubles/served_load/server.h"

namespace gauntlet::doubles::served_load::cpu {

lab::Side baseline(const Params& p, const lab::Cpu&) {
  p.server->start(1);
  lab::Side side([p] { p.server->answer(p, p.answers, 1); });
  side.facts = {{"in_flight", static_cast<double>(1)}};
  side.helpers = lab::Helpers::processes;
  return side;
}

}  // namespace gauntlet::doubles::served_load::cpu
