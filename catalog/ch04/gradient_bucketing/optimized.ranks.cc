// Tensors are packed into buckets, and one sum over the ranks is made for each bucket.
#include <algorithm>
#include <memory>
#include <vector>

#include "catalog/ch04/gradient_bucketing/pair.h"
#include "core/ranks/must.h"
#include "lab/author/linked.h"

namespace gauntlet::ch04::gradient_bucketing::ranks {

lab::Side optimized(const Params& p, const lab::Ranks& ranks) {
  const auto linked = lab::linked(ranks);
  const auto bucket =
      std::make_shared<std::vector<float>>(static_cast<std::size_t>(p.in_bucket * p.length));
  return lab::counted(lab::messages_of(linked), [p, linked, bucket] {
    for (std::int64_t first = 0; first < p.tensors; first += p.in_bucket) {
      const std::int64_t end = std::min(first + p.in_bucket, p.tensors);
      auto packed = bucket->begin();
      for (std::int64_t tensor = first; tensor < end; ++tensor) {
        packed = std::ranges::copy(p.gradient(tensor), packed).out;
      }
      gauntlet::ranks::must(linked->group->all_sum(std::span(bucket->begin(), packed)));
      auto unpacked = bucket->begin();
      for (std::int64_t tensor = first; tensor < end; ++tensor, unpacked += p.length) {
        std::copy_n(unpacked, p.length, p.sum(tensor).begin());
      }
    }
  });
}

}  // namespace gauntlet::ch04::gradient_bucketing::ranks
