// Every token is an atomic addition to what all threads count in.
#include <algorithm>
#include <memory>

#include "catalog/ch12/batched_atomics/pair.h"
#include "core/os/threads.h"
#include "lab/author/counts/shared_counters.h"
#include "lab/author/side.h"

namespace gauntlet::ch12::batched_atomics::cpu {
namespace {

void count_tokens(const Params& p, lab::SharedCounters& shared, std::int64_t begin,
                  std::int64_t end) {
  lab::SharedCounters::Adder adder(shared);
  for (std::int64_t token = begin; token < end; ++token)
    adder.add(expert_of(p.logits + token * kExperts), 1);
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cpu& cpu) {
  const auto shared = std::make_shared<lab::SharedCounters>(p.count);
  lab::Side side = lab::counted(lab::atomic_additions(shared), [p, shared, pool = cpu.pool] {
    std::fill_n(p.count, kExperts, 0u);
    pool->for_ranges(p.tokens, [&](std::int64_t begin, std::int64_t end) {
      count_tokens(p, *shared, begin, end);
    });
  });
  side.facts = {{"threads", static_cast<double>(cpu.pool->size())}};
  return side;
}

}  // namespace gauntlet::ch12::batched_atomics::cpu
