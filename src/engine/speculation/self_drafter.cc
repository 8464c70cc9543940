#include "engine/speculation/self_drafter.h"

#include <algorithm>
#include <deque>

namespace gauntlet::engine::inline speculation {
namespace {

/// A request's positions while it guesses: held in the pool, and free again whatever happens.
class Ahead {
 public:
  Ahead(KvPool& pool, SequenceId sequence) : pool_(pool), sequence_(sequence) {}
  ~Ahead() { pool_.retract(sequence_, count_); }
  Ahead(const Ahead&) = delete;
  Ahead& operator=(const Ahead&) = delete;

  void advance() {
    pool_.advance(sequence_, 1);
    ++count_;
  }

 private:
  KvPool& pool_;
  const SequenceId sequence_;
  std::int64_t count_ = 0;
};

}  // namespace

/// The last token first, whose own keys and values are not there yet; each guess then follows the
/// one before. The last needs no successor, so that all lie where the next step's rows do.
std::vector<Draft> SelfDrafter::propose(std::span<const DraftWish> wishes) {
  std::vector<Draft> drafts(wishes.size());
  std::deque<Ahead> ahead;
  std::int64_t most = 0;
  for (const DraftWish& wish : wishes) {
    ahead.emplace_back(target_.kv(), wish.sequence);
    most = std::max(most, wish.most);
  }
  for (std::int64_t made = 0; made < most; ++made) {
    std::vector<BatchItem> items;
    std::vector<std::size_t> asked;
    for (std::size_t i = 0; i < wishes.size(); ++i) {
      if (wishes[i].most <= made || std::ssize(drafts[i]) < made) continue;
      items.push_back({.sequence = wishes[i].sequence,
                       .tokens = {made == 0 ? wishes[i].tokens.back() : drafts[i].back()},
                       .sampling = drawn_after(wishes[i], made),
                       .num_drafts = 1,
                       .experts_per_token = experts_});
      asked.push_back(i);
    }
    if (items.empty()) break;
    const std::vector<ItemResult> results = target_.collect(target_.submit(std::move(items)));
    for (std::size_t a = 0; a < asked.size(); ++a) {
      // Where nothing can be chosen, there is nothing to go on from.
      if (results[a].token < 0) continue;
      drafts[asked[a]].push_back(results[a].token);
      ahead[asked[a]].advance();
    }
  }
  return drafts;
}

}  // namespace gauntlet::engine::inline speculation
