// Memory of the node that is farthest away, as a thread has it that was moved from there.
#include "catalog/ch03/numa_binding/pair.h"
#include "core/machine/numa.h"
#include "lab/author/side.h"

namespace gauntlet::ch03::numa_binding::cpu {

lab::Side baseline(const Params& p, const lab::Cpu&) {
  lab::Side side([p] { sum_rows(p, p.remote); });
  side.outcomes = [p]() -> std::map<std::string, double> {
    const auto places = places_here();
    if (!places) return {};
    const auto share = share_on_node(p.remote, 8 * kRowWords * p.rows, places->local);
    if (!share) return {};
    return {{"local_share", *share}};
  };
  return side;
}

}  // namespace gauntlet::ch03::numa_binding::cpu
