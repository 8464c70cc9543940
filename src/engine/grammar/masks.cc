#include "engine/grammar/masks.h"

#include <algorithm>

#include "core/random.h"

namespace gauntlet::engine::grammar {
namespace {

constexpr std::size_t kMaxKeptBytes = std::size_t{16} << 20;
/// Of one mask, which the engine waits for; a step takes 5 to 50 ns. Counted whether or not its
/// parts are kept, so that a mask depends on the text alone.
constexpr std::size_t kMaxMaskSteps = 2'000'000;

void set(Mask& mask, std::span<const std::int32_t> ids) {
  for (const std::int32_t id : ids) mask[static_cast<std::size_t>(id) / 32] |= 1u << (id % 32);
}

void merge(Mask& into, const Mask& from) {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] |= from[i];
}

}  // namespace

std::size_t Masks::KeyHash::operator()(const std::vector<std::uint32_t>& key) const {
  std::uint64_t hash = key.size();
  for (const std::uint32_t part : key) hash = mix64(hash ^ part);
  return hash;
}

Masks::Masks(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const Vocabulary> vocabulary)
    : grammar_(std::move(grammar)),
      vocabulary_(std::move(vocabulary)),
      max_kept_(std::max<std::size_t>(16, kMaxKeptBytes / (4 * vocabulary_->mask_words()))) {}

std::shared_ptr<const Mask> Masks::allowed(const Matcher& matcher) const {
  auto key = matcher.key(vocabulary_->max_depth());
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = kept_.find(key); found != kept_.end()) {
      ++counts_.kept;
      return found->second;
    }
  }
  auto mask = std::make_shared<const Mask>(make(matcher));
  const std::lock_guard lock(mutex_);
  ++counts_.made;
  if (kept_.size() >= max_kept_) kept_.clear();
  kept_.emplace(std::move(key), mask);
  return mask;
}

Masks::Counts Masks::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

std::size_t Masks::bytes() const {
  const std::lock_guard lock(mutex_);
  const std::size_t mask_bytes = vocabulary_->mask_words() * sizeof(Mask::value_type);
  return grammar_->bytes() + (kept_.size() + nodes_.size()) * mask_bytes;
}

Mask Masks::make(const Matcher& matcher) const {
  Mask mask(vocabulary_->mask_words(), 0);
  if (matcher.can_end()) set(mask, vocabulary_->end_ids());
  const auto nodes = vocabulary_->nodes();
  Stacks stacks = matcher.stacks();
  std::size_t steps = 0;
  for (const Head& head : matcher.heads().list) {
    if (steps > kMaxMaskSteps) break;
    const auto node = node_mask(head.node);
    merge(mask, node->inside);
    steps += node->steps;
    if (head.stack == Stacks::kEmpty || node->exits.empty()) continue;
    const auto frame = stacks.top(head.stack);
    Heads outside;
    enter(*grammar_, stacks, {.node = frame.then, .stack = frame.below}, outside);
    for (const std::uint32_t exit : node->exits)
      steps += walk(stacks, outside,
                    {.begin = exit + 1, .end = nodes[exit].end, .depth = nodes[exit].depth}, mask,
                    nullptr);
  }
  return mask;
}

std::shared_ptr<const Masks::NodeMask> Masks::node_mask(Grammar::Node head) const {
  const Grammar::Node node = grammar_->representative(head, vocabulary_->max_depth());
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = nodes_.find(node); found != nodes_.end()) return found->second;
  }
  auto made = std::make_shared<NodeMask>();
  made->inside.assign(vocabulary_->mask_words(), 0);
  if (grammar_->is_in_leaf_rule(node)) {
    walk_leaf(node, *made);
  } else {
    Stacks stacks;
    Heads heads;
    heads.list.push_back({.node = node});
    const auto all = static_cast<std::uint32_t>(vocabulary_->nodes().size());
    made->steps = walk(stacks, heads, {.begin = 0, .end = all}, made->inside, &made->exits);
  }
  const std::lock_guard lock(mutex_);
  ++counts_.nodes_walked;
  if (nodes_.size() >= max_kept_) nodes_.clear();
  nodes_.emplace(node, made);
  return made;
}

void Masks::walk_leaf(Grammar::Node node, NodeMask& out) const {
  const Grammar& grammar = *grammar_;
  const auto nodes = vocabulary_->nodes();
  std::vector<Grammar::Node> reached(vocabulary_->max_depth() + 1);
  reached[0] = node;
  for (std::uint32_t at = 0; at < nodes.size();) {
    const Vocabulary::Node& here = nodes[at];
    ++out.steps;
    const Grammar::Node next = grammar.next(reached[here.depth - 1], here.byte);
    if (next == Grammar::kNowhere) {
      at = here.end;
      continue;
    }
    reached[here.depth] = next;
    set(out.inside, vocabulary_->tokens_at(at));
    if (grammar.ends_rule(next) && here.end > at + 1) out.exits.push_back(at);
    ++at;
  }
}

std::size_t Masks::walk(Stacks& stacks, const Heads& from, const Walk& part, Mask& mask,
                        std::vector<std::uint32_t>* exits) const {
  if (part.begin >= part.end) return 0;
  std::size_t steps = 0;
  const auto nodes = vocabulary_->nodes();
  // What was reached at each depth below the start, and how large the stacks were then.
  std::vector<Heads> reached(1);
  std::vector<std::size_t> sizes = {stacks.size()};
  const std::size_t size_before = stacks.size();
  for (std::uint32_t at = part.begin; at < part.end;) {
    const Vocabulary::Node& here = nodes[at];
    const std::size_t depth = here.depth - part.depth;
    if (reached.size() <= depth) {
      reached.emplace_back();
      sizes.push_back(0);
    }
    stacks.truncate(sizes[depth - 1]);
    const Heads& before = depth == 1 ? from : reached[depth - 1];
    Heads& after = reached[depth];
    steps += 1 + before.list.size();
    step(*grammar_, stacks, before, here.byte, after);
    if (after.list.empty() && !after.ended) {
      at = here.end;
      continue;
    }
    sizes[depth] = stacks.size();
    set(mask, vocabulary_->tokens_at(at));
    if (after.ended && exits != nullptr && here.end > at + 1) exits->push_back(at);
    ++at;
  }
  stacks.truncate(size_before);
  return steps;
}

}  // namespace gauntlet::engine::grammar
