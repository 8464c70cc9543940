#include "engine/grammar/automata.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include "core/check.h"
#include "core/random.h"

namespace gauntlet::engine::grammar {
namespace {

constexpr std::uint32_t kNowhere = 0xFFFFFFFFu;
// In steps; allocations are dear.
constexpr std::size_t kNfaStateCost = 8;
constexpr std::size_t kDfaStateCost = 40;
constexpr std::size_t kSetCost = 20;
constexpr std::size_t kPairCost = 6;

struct SetHash {
  std::size_t operator()(const std::vector<std::uint32_t>& set) const {
    std::uint64_t hash = set.size();
    for (const std::uint32_t state : set) hash = mix64(hash ^ state);
    return hash;
  }
};

struct PairHash {
  std::size_t operator()(std::uint64_t pair) const { return mix64(pair); }
};

/// Edges come in rising order; neighbours that lead to the same state are one.
void append(std::vector<Dfa::Edge>& edges, int low, int high, std::uint32_t target) {
  if (!edges.empty() && edges.back().target == target && edges.back().high + 1 == low)
    edges.back().high = static_cast<std::uint8_t>(high);
  else
    edges.push_back({.low = static_cast<std::uint8_t>(low),
                     .high = static_cast<std::uint8_t>(high),
                     .target = target});
}

std::uint32_t target_of(const Dfa::State& state, int byte) {
  for (const Dfa::Edge& edge : state.edges)
    if (byte >= edge.low && byte <= edge.high) return edge.target;
  return kNowhere;
}

}  // namespace

Nfa::State Nfa::add() {
  work_.spend(kNfaStateCost);
  edges_.emplace_back();
  return static_cast<State>(edges_.size() - 1);
}

void Nfa::connect(State from, const Edge& edge) {
  work_.spend(2);
  edges_[from].push_back(edge);
}

void Nfa::empty(State from, State to) { connect(from, {.target = to}); }

void Nfa::bytes(State from, State to, std::uint8_t low, std::uint8_t high) {
  connect(from, {.kind = Edge::Kind::bytes, .low = low, .high = high, .target = to});
}

void Nfa::text(State from, State to, std::string_view text) {
  if (text.empty()) return empty(from, to);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<std::uint8_t>(text[i]);
    const State next = i + 1 == text.size() ? to : add();
    bytes(from, next, byte, byte);
    from = next;
  }
}

void Nfa::call(State from, State to, RuleId rule) {
  connect(from, {.kind = Edge::Kind::call, .rule = rule, .target = to});
}

void Nfa::embed(State from, State to, const Dfa& dfa) {
  check(!dfa.counted, "nothing is built from what counts");
  work_.spend(kNfaStateCost * dfa.states.size());
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
  for (std::int64_t i = 0; i < times.min; ++i) {
    const State next = add();
    part(at, next);
    at = next;
  }
  if (times.max) {
    for (std::int64_t i = times.min; i < *times.max; ++i) {
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
    work_.spend(1 + edges_[set[i]].size());
    for (const Edge& edge : edges_[set[i]]) {
      if (edge.kind != Edge::Kind::empty || seen[edge.target] == mark) continue;
      seen[edge.target] = mark;
      set.push_back(edge.target);
    }
  }
  std::sort(set.begin(), set.end());
}

Dfa Nfa::determinize(State start, State accept) const {
  std::unordered_map<Set, std::uint32_t, SetHash> ids;
  std::vector<const Set*> sets;  // keys of `ids`, which stay where they are
  std::vector<std::uint32_t> seen(edges_.size(), 0);
  std::uint32_t mark = 0;
  const auto id_of = [&](Set set) {
    std::sort(set.begin(), set.end());
    set.erase(std::unique(set.begin(), set.end()), set.end());
    close(set, seen, ++mark);
    work_.spend(kSetCost + 2 * set.size());
    const auto [found, fresh] =
        ids.try_emplace(std::move(set), static_cast<std::uint32_t>(sets.size()));
    if (fresh) sets.push_back(&found->first);
    return found->second;
  };

  Dfa dfa;
  id_of({start});
  std::vector<Edge> out;
  std::vector<int> borders;
  std::map<RuleId, Set> called;
  for (std::size_t at = 0; at < sets.size(); ++at) {
    work_.spend(kDfaStateCost);
    out.clear();
    borders.clear();
    called.clear();
    Dfa::State state;
    for (const State member : *sets[at]) {
      if (member == accept) state.accepts = true;
      for (const Edge& edge : edges_[member]) {
        if (edge.kind == Edge::Kind::call) called[edge.rule].push_back(edge.target);
        if (edge.kind != Edge::Kind::bytes) continue;
        out.push_back(edge);
        borders.push_back(edge.low);
        borders.push_back(edge.high + 1);
      }
    }
    std::sort(borders.begin(), borders.end());
    borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
    work_.spend(out.size() * (1 + borders.size() / 4));
    for (std::size_t i = 0; i + 1 < borders.size(); ++i) {
      Set next;
      for (const Edge& edge : out)
        if (edge.low <= borders[i] && borders[i] <= edge.high) next.push_back(edge.target);
      if (!next.empty())
        append(state.edges, borders[i], borders[i + 1] - 1, id_of(std::move(next)));
    }
    for (auto& [rule, next] : called)
      state.calls.push_back({.rule = rule, .target = id_of(std::move(next))});
    dfa.states.push_back(std::move(state));
  }
  return dfa;
}

Dfa dfa_of(Work& work, const std::function<void(Nfa&, Nfa::State, Nfa::State)>& part) {
  Nfa nfa(work);
  const Nfa::State start = nfa.add(), accept = nfa.add();
  part(nfa, start, accept);
  return nfa.determinize(start, accept);
}

Dfa combine(const Dfa& first, const Dfa& second, Product product, Work& work,
            const std::function<void(std::uint32_t second)>& on_state) {
  check(!first.counted && !second.counted, "nothing is built from what counts");
  // The state after the last of `second` stands for having left it.
  const auto left = static_cast<std::uint32_t>(second.states.size());
  std::unordered_map<std::uint64_t, std::uint32_t, PairHash> ids;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  const auto id_of = [&](std::uint32_t a, std::uint32_t b) {
    const std::uint64_t pair = std::uint64_t{a} << 32 | b;
    const auto [found, fresh] = ids.try_emplace(pair, static_cast<std::uint32_t>(pairs.size()));
    if (fresh) pairs.emplace_back(a, b);
    return found->second;
  };
  static const Dfa::State kNone;
  Dfa dfa;
  id_of(0, 0);
  for (std::size_t at = 0; at < pairs.size(); ++at) {
    const auto [a, b] = pairs[at];
    if (on_state) on_state(b);
    const Dfa::State& one = first.states[a];
    const Dfa::State& other = b == left ? kNone : second.states[b];
    check(one.calls.empty(), "automata are combined without calls");
    Dfa::State state;
    state.accepts = one.accepts && (product == Product::both ? other.accepts : !other.accepts);
    std::size_t j = 0;
    for (const Dfa::Edge& edge : one.edges) {
      for (int low = edge.low; low <= edge.high;) {
        while (j < other.edges.size() && other.edges[j].high < low) ++j;
        const bool is_past = j == other.edges.size();
        const bool is_gap = is_past || other.edges[j].low > low;
        const int end = is_past ? 255 : is_gap ? other.edges[j].low - 1 : other.edges[j].high;
        const int high = std::min<int>(edge.high, end);
        if (!is_gap)
          append(state.edges, low, high, id_of(edge.target, other.edges[j].target));
        else if (product == Product::first_without_second)
          append(state.edges, low, high, id_of(edge.target, left));
        low = high + 1;
      }
    }
    work.spend(kDfaStateCost + kPairCost * state.edges.size());
    dfa.states.push_back(std::move(state));
  }
  return dfa;
}

Dfa minimized(const Dfa& dfa, Work& work) {
  const std::size_t size = dfa.states.size();
  std::vector<std::uint32_t> group(size);
  for (std::size_t i = 0; i < size; ++i) group[i] = dfa.states[i].accepts ? 1 : 0;
  // Groups are split by where their members' edges lead until none is. Numbers of groups rise with
  // their first member, so that state 0 stays the first.
  std::size_t num_groups = 0;
  for (;;) {
    std::unordered_map<std::vector<std::uint32_t>, std::uint32_t, SetHash> ids;
    std::vector<std::uint32_t> next(size);
    std::vector<std::uint32_t> key;
    for (std::size_t i = 0; i < size; ++i) {
      key.assign(1, group[i]);
      int end = -1;  // of the edges so far that lead to the same group
      for (const Dfa::Edge& edge : dfa.states[i].edges) {
        const std::uint32_t target = group[edge.target];
        if (end + 1 == edge.low && key.size() > 1 && key.back() == target) {
          key[key.size() - 2] = edge.high;
        } else {
          key.push_back(edge.low);
          key.push_back(edge.high);
          key.push_back(target);
        }
        end = edge.high;
      }
      work.spend(kSetCost + key.size());
      next[i] = ids.try_emplace(key, static_cast<std::uint32_t>(ids.size())).first->second;
    }
    group = std::move(next);
    if (ids.size() == num_groups) break;
    num_groups = ids.size();
  }
  Dfa small;
  small.states.resize(num_groups);
  std::vector<bool> done(num_groups, false);
  for (std::size_t i = 0; i < size; ++i) {
    if (done[group[i]]) continue;
    done[group[i]] = true;
    Dfa::State& state = small.states[group[i]];
    state.accepts = dfa.states[i].accepts;
    for (const Dfa::Edge& edge : dfa.states[i].edges)
      append(state.edges, edge.low, edge.high, group[edge.target]);
  }
  return small;
}

Dfa looped(const Dfa& item) {
  std::vector<std::uint32_t> ids(item.states.size(), 0);
  std::uint32_t size = 0;
  for (std::size_t i = 0; i < item.states.size(); ++i)
    if (!item.states[i].accepts) ids[i] = size++;
  Dfa loop;
  loop.states.reserve(size);
  for (const Dfa::State& state : item.states) {
    if (state.accepts) continue;
    Dfa::State& copy = loop.states.emplace_back();
    for (const Dfa::Edge& edge : state.edges)
      append(copy.edges, edge.low, edge.high, ids[edge.target]);
  }
  loop.states[0].accepts = true;
  return loop;
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
