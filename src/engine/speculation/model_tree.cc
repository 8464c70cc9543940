// Trees by a smaller model: each level is computed in one step together with those before it, of
// which nothing is kept but the guesses.
#include <algorithm>
#include <set>

#include "engine/speculation/model_drafter.h"

namespace gauntlet::engine::inline speculation {
namespace {

/// Those that are followed and all before them, in their order.
std::vector<std::int32_t> followed_paths(const TreeSearch& search) {
  std::set<std::int32_t> guesses;
  for (const std::int32_t guess : search.followed()) {
    for (const std::int32_t one : search.path_to(guess)) guesses.insert(one);
  }
  return {guesses.begin(), guesses.end()};
}

/// What is followed lies behind what comes before it: a row for each.
BatchItem item_of(const TreeSearch& search, const std::vector<std::int32_t>& guesses,
                  SequenceId sequence) {
  BatchItem item{.sequence = sequence,
                 .want = Want::logits,
                 .num_drafts = std::ssize(guesses),
                 .role = ItemRole::decode};
  for (std::size_t i = 0; i < guesses.size(); ++i) {
    const std::int32_t parent = search[guesses[i]].parent;
    const auto place = std::ranges::lower_bound(guesses, parent) - guesses.begin();
    item.tokens.push_back(search[guesses[i]].token);
    item.parents.push_back(parent < 0 ? -1 : static_cast<std::int32_t>(place));
    const bool is_followed = std::ranges::binary_search(search.followed(), guesses[i]);
    if (is_followed && i + 1 < guesses.size()) {
      item.rows.push_back({.token = static_cast<std::int64_t>(i), .want = Want::logits});
    }
  }
  return item;
}

}  // namespace

void ModelDrafter::add(TreeSearch& search, std::size_t index,
                       const std::vector<float>& logits) const {
  const auto& kernels = kernels::cpu::kernels(executor_->plan().simd);
  search.add(index, logits, kernels.log_sum_exp(logits.data(), std::ssize(logits)));
}

void ModelDrafter::grow(std::vector<Going>& going) {
  std::vector<Going*> open;
  for (Going& one : going) {
    if (one.search) open.push_back(&one);
  }
  while (!open.empty()) {
    std::vector<Going*> deeper;
    std::vector<BatchItem> items;
    std::int64_t room = executor_->max_batch_tokens();
    for (Going* one : open) {
      if (!one->search->descend()) continue;
      const std::vector<std::int32_t> guesses = followed_paths(*one->search);
      // Where there is no room, what was found so far is handed in.
      const std::int64_t count = std::ssize(guesses);
      if (count > std::min(room, kMostTreeTokens) || !reserve(*one, count)) continue;
      items.push_back(item_of(*one->search, guesses, one->request->sequence));
      deeper.push_back(one);
      room -= count;
    }
    open = std::move(deeper);
    if (items.empty()) break;
    const auto results = executor_->collect(executor_->submit(std::move(items)));
    for (std::size_t i = 0; i < results.size(); ++i) {
      const std::vector<RowResult>& rows = results[i].rows;
      for (std::size_t r = 0; r < rows.size(); ++r) add(*open[i]->search, r, rows[r].logits);
      add(*open[i]->search, rows.size(), results[i].logits);
    }
  }
  for (Going& one : going) {
    if (one.search) *one.draft = one.search->draft();
  }
}

}  // namespace gauntlet::engine::inline speculation
