// Who computes which steps of which tile: rounds of whole tiles, and at the end an even share of
// what does not make a round.
#pragma once

namespace gauntlet::labs::matmul_ladder {

/// Steps [first, end) of a tile's sums. Who has the first step also has the tile's sums and stores
/// them; the rest, if there is one, is the first item that the next cluster has after its rounds.
struct WorkItem {
  int tile = 0;
  int first = 0;
  int end = 0;
};

/// The items of one of `clusters`, one after another.
class EvenWork {
 public:
  constexpr EvenWork(int tiles, int steps, int clusters, int cluster)
      : steps_(steps), clusters_(clusters), rounds_end_(tiles), tile_(cluster) {
    // Shares are of the last whole round and of what is left after it: longer than a tile, so that
    // none is cut more than once.
    if (tiles < clusters || tiles % clusters == 0) return;
    rounds_end_ = (tiles / clusters - 1) * clusters;
    const int left = (tiles - rounds_end_) * steps;  // fewer than two rounds
    const int at = left / clusters * cluster + left % clusters * cluster / clusters;
    const int next = cluster + 1;
    share_ = left / clusters * next + left % clusters * next / clusters - at;
    shared_tile_ = rounds_end_ + at / steps;
    first_ = at % steps;
  }

  /// False when there are no more.
  constexpr bool next(WorkItem& item) {
    if (tile_ < rounds_end_) {
      item = {.tile = tile_, .first = 0, .end = steps_};
      tile_ += clusters_;
      return true;
    }
    if (share_ == 0) return false;
    const int count = share_ < steps_ - first_ ? share_ : steps_ - first_;
    item = {.tile = shared_tile_, .first = first_, .end = first_ + count};
    share_ -= count;
    ++shared_tile_;
    first_ = 0;
    return true;
  }

 private:
  int steps_, clusters_;
  int rounds_end_;  // of the tiles that are nobody's in part
  int tile_;
  int share_ = 0;  // steps of the tiles that are left
  int shared_tile_ = 0, first_ = 0;
};

}  // namespace gauntlet::labs::matmul_ladder
