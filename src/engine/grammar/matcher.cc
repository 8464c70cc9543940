#include "engine/grammar/matcher.h"

#include <algorithm>

namespace gauntlet::engine::grammar {
namespace {

/// Above any chain of calls that link() lets through, so that one head at least is reached.
constexpr std::size_t kMaxCallers = 4 * Grammar::kMaxNestedStarts;

/// Nothing can follow in the rule: returning to it is returning from it.
bool only_ends(const Grammar& grammar, Grammar::Node node) {
  return grammar.ends_rule(node) && !grammar.takes_bytes(node) && grammar.calls(node).empty();
}

}  // namespace

bool Stacks::same(Id a, Id b) const {
  while (a != b) {
    if (a == kEmpty || b == kEmpty || top(a).then != top(b).then) return false;
    a = top(a).below;
    b = top(b).below;
  }
  return true;
}

void enter(const Grammar& grammar, Stacks& stacks, Head reached, Heads& heads) {
  // The last of several is done first, so that they come out in the order of the grammar.
  std::vector<Head> open = {reached};
  while (!open.empty()) {
    const Head head = open.back();
    open.pop_back();
    const auto is_head = [&](const Head& other) {
      return other.node == head.node && stacks.same(other.stack, head.stack);
    };
    if (grammar.takes_bytes(head.node)) {
      if (std::any_of(heads.list.begin(), heads.list.end(), is_head)) continue;
      if (heads.list.size() == kMaxHeads) return;
      heads.list.push_back(head);
    }
    if (!grammar.calls(head.node).empty()) {
      if (std::any_of(heads.callers.begin(), heads.callers.end(), is_head)) continue;
      if (heads.callers.size() == kMaxCallers) return;
      heads.callers.push_back(head);
    }
    if (grammar.ends_rule(head.node)) {
      if (head.stack == Stacks::kEmpty) {
        heads.ended = true;
      } else {
        const auto frame = stacks.top(head.stack);
        open.push_back({.node = frame.then, .stack = frame.below});
      }
    }
    for (const Grammar::Call& call : grammar.calls(head.node)) {
      const Stacks::Id stack =
          only_ends(grammar, call.then) ? head.stack : stacks.push(call.then, head.stack);
      open.push_back({.node = call.start, .stack = stack});
    }
  }
}

void step(const Grammar& grammar, Stacks& stacks, const Heads& before, std::uint8_t byte,
          Heads& after) {
  after.list.clear();
  after.callers.clear();
  after.ended = false;
  for (const Head& head : before.list) {
    const Grammar::Node next = grammar.next(head.node, byte);
    if (next == Grammar::kNowhere) continue;
    enter(grammar, stacks, {.node = next, .stack = head.stack}, after);
  }
}

Matcher::Matcher(const Grammar& grammar) : grammar_(&grammar) {
  enter(grammar, stacks_, {.node = grammar.start()}, heads_);
}

bool Matcher::advance(std::uint8_t byte) {
  Heads after;
  step(*grammar_, stacks_, heads_, byte, after);
  if (after.list.empty() && !after.ended) return false;
  heads_ = std::move(after);
  if (stacks_.size() > compact_above_) compact();
  return true;
}

bool Matcher::advance(std::string_view bytes) {
  const Matcher before = *this;
  for (const char byte : bytes) {
    if (advance(static_cast<std::uint8_t>(byte))) continue;
    *this = before;
    return false;
  }
  return true;
}

std::vector<std::uint32_t> Matcher::key(std::size_t horizon) const {
  std::vector<std::uint32_t> key = {heads_.ended ? 1u : 0u};
  constexpr std::uint32_t kHeadEnd = 0xFFFFFFFFu;
  for (const Head& head : heads_.list) {
    key.push_back(grammar_->representative(head.node, horizon));
    for (Stacks::Id at = head.stack; at != Stacks::kEmpty; at = stacks_.top(at).below)
      key.push_back(stacks_.top(at).then);
    key.push_back(kHeadEnd);
  }
  return key;
}

void Matcher::compact() {
  Stacks kept;
  std::vector<Stacks::Id> moved(stacks_.size() + 1, Stacks::kEmpty);
  std::vector<Stacks::Id> path;
  for (Head& head : heads_.list) {
    path.clear();
    Stacks::Id at = head.stack;
    for (; at != Stacks::kEmpty && moved[at] == Stacks::kEmpty; at = stacks_.top(at).below)
      path.push_back(at);
    for (Stacks::Id below = moved[at]; !path.empty(); path.pop_back()) {
      below = kept.push(stacks_.top(path.back()).then, below);
      moved[path.back()] = below;
    }
    head.stack = moved[head.stack];
  }
  stacks_ = std::move(kept);
  compact_above_ = kCompactAbove + 2 * stacks_.size();
  heads_.callers.clear();
}

}  // namespace gauntlet::engine::grammar
