#include "engine/speculation/model_drafter.h"

#include <algorithm>

namespace gauntlet::engine::inline speculation {

ModelDrafter::~ModelDrafter() {
  for (const auto& [id, request] : requests_) executor_->kv().free(request.sequence);
}

void ModelDrafter::end(std::int64_t id) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return;
  executor_->kv().free(found->second.sequence);
  requests_.erase(found);
}

/// Where this pool has no room, the others' guesses matter more than waiting for some.
bool ModelDrafter::reserve(Going& one, std::int64_t count) {
  const std::int64_t end = executor_->kv().next_position(one.request->sequence) + count;
  return end <= executor_->config().max_positions &&
         executor_->kv().reserve(one.request->sequence, count);
}

void ModelDrafter::run(std::vector<BatchItem> items, const std::vector<Going*>& asked) {
  if (items.empty()) return;
  const std::vector<ItemResult> results = executor_->collect(executor_->submit(std::move(items)));
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].token < 0) continue;
    if (asked[i]->search) {
      add(*asked[i]->search, 0, results[i].logits);
    } else {
      asked[i]->draft->push_back(results[i].token);
    }
  }
}

void ModelDrafter::catch_up(std::vector<Going>& going) {
  while (true) {
    std::vector<BatchItem> items;
    std::vector<Going*> asked;
    std::int64_t room = executor_->max_batch_tokens();
    for (Going& one : going) {
      const auto known = one.wish->tokens.subspan(one.request->computed);
      const std::int64_t count = std::min(std::ssize(known), room);
      if (count == 0 || !reserve(one, count)) continue;
      const auto some = known.first(count);
      items.push_back({.sequence = one.request->sequence,
                       .tokens = {some.begin(), some.end()},
                       .want = some.size() < known.size() ? Want::nothing
                               : one.search               ? Want::logits
                                                          : Want::token,
                       .sampling = drawn_after(*one.wish, 0)});
      asked.push_back(&one);
      one.request->computed += count;
      room -= count;
    }
    if (items.empty()) return;
    run(std::move(items), asked);
  }
}

void ModelDrafter::guess(std::vector<Going>& going) {
  std::vector<BatchItem> items;
  std::vector<Going*> asked;
  for (Going& one : going) {
    // Its first guess is there unless the pool had no room; the last needs no successor.
    const std::int64_t made = std::ssize(*one.draft);
    if (made != one.ahead + 1 || made >= one.wish->most || !reserve(one, 1)) continue;
    items.push_back({.sequence = one.request->sequence,
                     .tokens = {one.draft->back()},
                     .sampling = drawn_after(*one.wish, made),
                     .num_drafts = 1});
    asked.push_back(&one);
  }
  run(std::move(items), asked);
  for (Going* one : asked) {
    executor_->kv().advance(one->request->sequence, 1);
    ++one->ahead;
  }
}

std::vector<Draft> ModelDrafter::propose(std::span<const DraftWish> wishes) {
  std::vector<Draft> drafts(wishes.size());
  std::vector<Going> going;
  std::int64_t most = 0;
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    Request& request = requests_[wishes[i].id];
    if (request.sequence == 0) request.sequence = executor_->kv().create();
    going.push_back({.wish = &wishes[i], .draft = &drafts[i], .request = &request});
    if (!wishes[i].tree.is_chain()) going.back().search.emplace(wishes[i].tree, wishes[i].most);
    most = std::max(most, wishes[i].most);
  }
  catch_up(going);
  grow(going);
  for (std::int64_t i = 1; i < most; ++i) guess(going);
  for (const Going& one : going) {
    executor_->kv().retract(one.request->sequence, one.ahead);
    executor_->kv().trim(one.request->sequence);
  }
  return drafts;
}

}  // namespace gauntlet::engine::inline speculation
