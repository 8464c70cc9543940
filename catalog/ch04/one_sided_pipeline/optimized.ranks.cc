// Each batch is written into the next stage's memory, where it is used; a flag says that it is
// there, and another one that its place is free again.
#include <memory>

#include "catalog/ch04/one_sided_pipeline/pair.h"
#include "core/ranks/must.h"
#include "core/ranks/symmetric.h"
#include "lab/author/linked.h"

namespace gauntlet::ch04::one_sided_pipeline::ranks {
namespace {

using gauntlet::ranks::must;

constexpr std::uint64_t kPlaces = 4;
constexpr int kFilled = 0, kFreed = 1;  // flags: of a stage by the one before, by the one behind

}  // namespace

lab::Side optimized(const Params& p, const lab::Ranks& ranks) {
  const auto linked = lab::linked(ranks);
  const std::shared_ptr<gauntlet::ranks::Window> window =
      must(gauntlet::ranks::open_symmetric_window(*linked->group, kPlaces * p.bytes(), 2));
  const auto total = std::make_shared<std::uint64_t>(0);  // batches of all runs
  return lab::counted(lab::messages_of(linked), [p, linked, window, total] {
    for (std::int64_t batch = 0; batch < p.batches; ++batch, ++*total) {
      const std::size_t place = *total % kPlaces * p.bytes();
      const std::uint32_t* in = p.inputs + batch * p.size;
      if (p.rank > 0) {
        must(window->wait(kFilled, *total + 1));
        in = reinterpret_cast<const std::uint32_t*>(window->bytes().data() + place);
      }
      compute(p, in, p.output(batch));
      if (p.rank > 0) must(window->put(p.rank - 1, 0, {}, kFreed));
      if (p.rank + 1 < p.num_ranks) {
        if (*total >= kPlaces) must(window->wait(kFreed, *total + 1 - kPlaces));
        must(window->put(p.rank + 1, place, std::as_bytes(p.output(batch)), kFilled));
      }
    }
  });
}

}  // namespace gauntlet::ch04::one_sided_pipeline::ranks
