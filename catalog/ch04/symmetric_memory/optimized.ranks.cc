// Each rank writes its values into the memory of the others, and adds up what lies in its own.
#include <memory>

#include "catalog/ch04/symmetric_memory/pair.h"
#include "core/ranks/must.h"
#include "core/ranks/symmetric.h"
#include "lab/author/linked.h"

namespace gauntlet::ch04::symmetric_memory::ranks {
namespace {

using gauntlet::ranks::must;

/// A place for each rank's values, twice: who is at step s + 1 has finished step s, so that the
/// places of step s may be written again at step s + 2.
class DirectSum {
 public:
  DirectSum(gauntlet::ranks::Group& group, std::int64_t length)
      : ranks_(group.size()),
        rank_(group.rank()),
        length_(static_cast<std::size_t>(length)),
        window_(must(gauntlet::ranks::open_symmetric_window(
            group, 2 * static_cast<std::size_t>(ranks_) * length_ * sizeof(float), 2))) {}

  void operator()(std::span<const float> values, std::span<float> sum) {
    const int half = static_cast<int>(step_ % 2);
    for (int i = 0; i < ranks_; ++i) {
      const int to = (rank_ + 1 + i) % ranks_;
      must(window_->put(to, place(half, rank_), std::as_bytes(values), half));
    }
    must(window_->wait(half, (step_ / 2 + 1) * static_cast<std::uint64_t>(ranks_)));
    const auto* all = reinterpret_cast<const float*>(window_->bytes().data() + place(half, 0));
    for (std::size_t i = 0; i < length_; ++i) {
      float total = 0;
      for (int rank = 0; rank < ranks_; ++rank)
        total += all[static_cast<std::size_t>(rank) * length_ + i];
      sum[i] = total;
    }
    ++step_;
  }

 private:
  std::size_t place(int half, int rank) const {
    return static_cast<std::size_t>(half * ranks_ + rank) * length_ * sizeof(float);
  }

  int ranks_, rank_;
  std::size_t length_;
  std::unique_ptr<gauntlet::ranks::Window> window_;
  std::uint64_t step_ = 0;
};

}  // namespace

lab::Side optimized(const Params& p, const lab::Ranks& ranks) {
  const auto linked = lab::linked(ranks);
  const auto sum = std::make_shared<DirectSum>(*linked->group, p.length);
  return lab::counted(lab::messages_of(linked), [p, linked, sum] {
    for (std::int64_t step = 0; step < p.steps; ++step) (*sum)(p.value(step), p.sum(step));
  });
}

}  // namespace gauntlet::ch04::symmetric_memory::ranks
