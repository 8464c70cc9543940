#include "engine/grammar/automata.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include "core/check.h"
#include "core/random.h"

namespace gauntlet::engine::grammar {
namespace {

constexpr std::size_t kMaxDfaStates = 60'000;
constexpr std::uint32_t kNowhere = 0xFFFFFFFFu;

struct SetHash {
  std::size_t operator()(const std::vector<std::uint32_t>& set) const {
    std::uint64_t hash = set.size();
    for (const std::uint32_t state : set) hash = mix64(hash ^ state);
    return hash;
  }
};

/// Where each byte leads, as few edges as possible.
std::vector<Dfa::Edge> edges_of(const std::array<std::uint32_t, 256>& targets) {
  std::vector<Dfa::Edge> edges;
  for (int byte = 0; byte < 256; ++byte) {
    if (targets[byte] == kNowhere) continue;
    const auto value = static_cast<std::uint8_t>(byte);
    if (byte > 0 && targets[byte - 1] == targets[byte])
      edges.back().high = value;
    else
      edges.push_back({.low = value, .high = value, .target = targets[byte]});
  }
  return edges;
}

std::uint32_t target_of(const Dfa::State& state, int byte) {
  for (const Dfa::Edge& edge : state.edges)
    if (byte >= edge.low && byte <= edge.high) return edge.target;
  return kNowhere;
}

}  // namespace

Nfa::State Nfa::add() {
  if (edges_.size() >= kMaxStates) {
    overflowed_ = true;
    return 0;
  }
  edges_.emplace_back();
  return static_cast<State>(edges_.size() - 1);
}

void Nfa::empty(State from, State to) {
  if (!overflowed_) edges_[from].push_back({.target = to});
}

void Nfa::bytes(State from, State to, std::uint8_t low, std::uint8_t high) {
  if (!overflowed_)
    edges_[from].push_back({.kind = Edge::Kind::bytes, .low = low, .high = high, .target = to});
}

void Nfa::text(State from, State to, std::string_view text) {
  if (text.empty()) return empty(from, to);
  for (std::size_t i = 0; i < text.size() && !overflowed_; ++i) {
    const auto byte = static_cast<std::uint8_t>(text[i]);
    const State next = i + 1 == text.size() ? to : add();
    bytes(from, next, byte, byte);
    from = next;
  }
}

void Nfa::call(State from, State to, RuleId rule) {
  if (!overflowed_) edges_[from].push_back({.kind = Edge::Kind::call, .rule = rule, .target = to});
}

void Nfa::embed(State from, State to, const Dfa& dfa) {
  if (edges_.size() + dfa.states.size() > kMaxStates) overflowed_ = true;
  if (overflowed_) return;
  const auto first = static_cast<State>(edges_.size());
  edges_.resize(edges_.size() + dfa.states.size());
  empty(from, first);
  for (std::size_t i = 0; i < dfa.states.size(); ++i) {
    const State state = first + static_cast<State>(i);
    for (const Dfa::Edge& edge : dfa.states[i].edges)
      bytes(state, first + edge.target, edge.low, edge.high);
    for (const Dfa::Call& made : dfa.states[i].calls) call(state, first + made.target, made.rule);
    if (dfa.states[i].accepts) empty(state, to);
  }
}

void Nfa::optional(State from, State to, const Part& part) {
  part(from, to);
  empty(from, to);
}

void Nfa::repeat(State from, State to, const Repetitions& times, const Part& part) {
  State at = add();
  empty(from, at);
  for (std::int64_t i = 0; i < times.min && !overflowed_; ++i) {
    const State next = add();
    part(at, next);
    at = next;
  }
  if (times.max) {
    for (std::int64_t i = times.min; i < *times.max && !overflowed_; ++i) {
      const State next = add();
      empty(at, to);
      part(at, next);
      at = next;
    }
  } else {
    const State again = add();
    part(at, again);
    empty(again, at);
  }
  empty(at, to);
}

void Nfa::close(Set& set, std::vector<std::uint32_t>& seen, std::uint32_t mark) const {
  for (const State state : set) seen[state] = mark;
  for (std::size_t i = 0; i < set.size(); ++i) {
    for (const Edge& edge : edges_[set[i]]) {
      if (edge.kind != Edge::Kind::empty || seen[edge.target] == mark) continue;
      seen[edge.target] = mark;
      set.push_back(edge.target);
    }
  }
  std::sort(set.begin(), set.end());
}

std::optional<Dfa> Nfa::determinize(State start, State accept) const {
  if (overflowed_) return std::nullopt;
  std::unordered_map<Set, std::uint32_t, SetHash> ids;
  std::vector<Set> sets;
  std::vector<std::uint32_t> seen(edges_.size(), 0);
  std::uint32_t mark = 0;
  // Work, not only states, is bounded: few states of many members each are dear too.
  std::size_t members = 0;
  const auto id_of = [&](Set set) {
    std::sort(set.begin(), set.end());
    set.erase(std::unique(set.begin(), set.end()), set.end());
    close(set, seen, ++mark);
    members += set.size();
    const auto [found, fresh] = ids.try_emplace(set, static_cast<std::uint32_t>(sets.size()));
    if (fresh) sets.push_back(std::move(set));
    return found->second;
  };

  Dfa dfa;
  id_of({start});
  for (std::size_t at = 0; at < sets.size(); ++at) {
    if (sets.size() > kMaxDfaStates || members > 8 * kMaxStates) return std::nullopt;
    std::array<bool, 257> border{};
    std::vector<Edge> out;
    std::map<RuleId, Set> called;
    Dfa::State state;
    for (const State member : sets[at]) {
      if (member == accept) state.accepts = true;
      for (const Edge& edge : edges_[member]) {
        if (edge.kind == Edge::Kind::call) called[edge.rule].push_back(edge.target);
        if (edge.kind != Edge::Kind::bytes) continue;
        out.push_back(edge);
        border[edge.low] = border[edge.high + 1] = true;
      }
    }
    std::array<std::uint32_t, 256> targets;
    targets.fill(kNowhere);
    for (int low = 0; low < 256 && !out.empty();) {
      int high = low;
      while (high < 255 && !border[high + 1]) ++high;
      Set next;
      for (const Edge& edge : out)
        if (edge.low <= low && low <= edge.high) next.push_back(edge.target);
      if (!next.empty()) {
        const std::uint32_t target = id_of(std::move(next));
        std::fill(targets.begin() + low, targets.begin() + high + 1, target);
      }
      low = high + 1;
    }
    state.edges = edges_of(targets);
    for (auto& [rule, next] : called)
      state.calls.push_back({.rule = rule, .target = id_of(std::move(next))});
    dfa.states.push_back(std::move(state));
  }
  return dfa;
}

std::optional<Dfa> dfa_of(const std::function<void(Nfa&, Nfa::State, Nfa::State)>& part) {
  Nfa nfa;
  const Nfa::State start = nfa.add(), accept = nfa.add();
  part(nfa, start, accept);
  return nfa.determinize(start, accept);
}

std::optional<Dfa> combine(const Dfa& first, const Dfa& second, Product product) {
  // The state after the last of `second` stands for having left it.
  const auto left = static_cast<std::uint32_t>(second.states.size());
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> ids;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  const auto id_of = [&](std::uint32_t a, std::uint32_t b) {
    const auto [found, fresh] = ids.try_emplace({a, b}, static_cast<std::uint32_t>(pairs.size()));
    if (fresh) pairs.emplace_back(a, b);
    return found->second;
  };
  Dfa dfa;
  id_of(0, 0);
  for (std::size_t at = 0; at < pairs.size(); ++at) {
    if (pairs.size() > kMaxDfaStates) return std::nullopt;
    const auto [a, b] = pairs[at];
    check(first.states[a].calls.empty(), "automata are combined without calls");
    const bool in_second = b != left && second.states[b].accepts;
    Dfa::State state;
    state.accepts = first.states[a].accepts && (product == Product::both ? in_second : !in_second);
    std::array<std::uint32_t, 256> targets;
    targets.fill(kNowhere);
    for (int byte = 0; byte < 256; ++byte) {
      const std::uint32_t next_a = target_of(first.states[a], byte);
      if (next_a == kNowhere) continue;
      std::uint32_t next_b = b == left ? kNowhere : target_of(second.states[b], byte);
      if (next_b == kNowhere) {
        if (product == Product::both) continue;
        next_b = left;
      }
      targets[byte] = id_of(next_a, next_b);
    }
    state.edges = edges_of(targets);
    dfa.states.push_back(std::move(state));
  }
  return dfa;
}

bool accepts(const Dfa& dfa, std::string_view text) {
  std::uint32_t at = 0;
  for (const char byte : text) {
    at = target_of(dfa.states[at], static_cast<unsigned char>(byte));
    if (at == kNowhere) return false;
  }
  return dfa.states[at].accepts;
}

}  // namespace gauntlet::engine::grammar
