// The table in pages of 4 KiB.
#include "catalog/ch03/huge_pages/pair.h"
#include "core/os/pages.h"
#include "lab/author/side.h"

namespace gauntlet::ch03::huge_pages::cpu {

lab::Side baseline(const Params& p, const lab::Cpu&) {
  lab::Side side([p] { look_up(p, p.small); });
  side.outcomes = [p]() -> std::map<std::string, double> {
    const std::int64_t huge = huge_page_bytes(p.small, 8 * kWords * p.rows);
    return {{"huge_page_bytes", static_cast<double>(huge)}};
  };
  return side;
}

}  // namespace gauntlet::ch03::huge_pages::cpu
