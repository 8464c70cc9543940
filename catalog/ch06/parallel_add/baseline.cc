// One core adds everything.
#include "catalog/ch06/parallel_add/pair.h"
#include "lab/author/counted.h"

namespace gauntlet::ch06::parallel_add::cpu {
namespace {

void add(const Params& p, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) p.sum[i] = p.a[i] + p.b[i];
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cpu&) {
  return lab::counted(lab::working_threads(), [p] { add(p, 0, p.count); });
}

}  // namespace gauntlet::ch06::parallel_add::cpu
