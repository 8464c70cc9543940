#include "engine/grammar/grammar.h"

#include <fmt/format.h>

#include <algorithm>

namespace gauntlet::engine::grammar {
namespace {

constexpr std::size_t kMaxTableEntries = 4u << 20;

Error refused(std::string why) { return {.message = std::move(why), .kind = ErrorKind::wrong_use}; }

using Flags = std::vector<std::vector<bool>>;  // [rules, states]

struct Place {
  RuleId rule = 0;
  std::uint32_t state = 0;
};

/// The states from which the end of their rule can be reached: found backwards from the ends.
class Finishable {
 public:
  Finishable(const std::vector<Dfa>& rules, const std::vector<bool>& is_empty, Work& work)
      : rules_(rules), flags_(rules.size()), before_(rules.size()), callers_(rules.size()) {
    for (RuleId rule = 0; rule < rules.size(); ++rule) {
      flags_[rule].assign(rules[rule].states.size(), false);
      before_[rule].resize(rules[rule].states.size());
      for (std::uint32_t at = 0; at < rules[rule].states.size(); ++at) {
        const Dfa::State& state = rules[rule].states[at];
        work.spend(2 + 2 * state.edges.size() + 2 * state.calls.size());
        for (const Dfa::Edge& edge : state.edges) before_[rule][edge.target].push_back({at, kByte});
        for (const Dfa::Call& call : state.calls) {
          before_[rule][call.target].push_back({at, call.rule});
          callers_[call.rule].push_back({rule, at});
        }
        if (state.accepts && !is_empty[rule]) mark({rule, at});
      }
    }
    while (!open_.empty()) {
      const Place at = open_.back();
      open_.pop_back();
      for (const Before& one : before_[at.rule][at.state])
        if (one.rule == kByte || flags_[one.rule][0]) mark({at.rule, one.state});
      if (at.state != 0) continue;
      for (const Place& caller : callers_[at.rule]) {
        const auto& calls = rules_[caller.rule].states[caller.state].calls;
        work.spend(1 + calls.size());
        for (const Dfa::Call& call : calls)
          if (call.rule == at.rule && flags_[caller.rule][call.target]) mark(caller);
      }
    }
  }

  Flags take() { return std::move(flags_); }

 private:
  static constexpr RuleId kByte = 0xFFFFFFFFu;
  struct Before {
    std::uint32_t state = 0;
    RuleId rule = 0;  // that is called on the way; kByte: a byte is taken
  };

  void mark(Place place) {
    if (flags_[place.rule][place.state]) return;
    flags_[place.rule][place.state] = true;
    open_.push_back(place);
  }

  const std::vector<Dfa>& rules_;
  Flags flags_;
  std::vector<std::vector<std::vector<Before>>> before_;  // [rules, states]
  std::vector<std::vector<Place>> callers_;               // by the rule called
  std::vector<Place> open_;
};

/// Whether following calls from the starts of rules comes back to a rule.
bool calls_itself_first(const std::vector<Dfa>& rules) {
  enum class Mark : std::uint8_t { fresh, open, done };
  std::vector<Mark> marks(rules.size(), Mark::fresh);
  struct Visit {
    std::size_t rule;
    std::size_t call;
  };
  for (std::size_t root = 0; root < rules.size(); ++root) {
    if (marks[root] != Mark::fresh) continue;
    std::vector<Visit> path = {{root, 0}};
    marks[root] = Mark::open;
    while (!path.empty()) {
      Visit& visit = path.back();
      const auto& calls = rules[visit.rule].states[0].calls;
      if (visit.call == calls.size()) {
        marks[visit.rule] = Mark::done;
        path.pop_back();
        continue;
      }
      const RuleId called = calls[visit.call++].rule;
      if (marks[called] == Mark::open) return true;
      if (marks[called] == Mark::done) continue;
      marks[called] = Mark::open;
      path.push_back({called, 0});
    }
  }
  return false;
}

/// The rules that may start where this one does, itself included.
std::size_t nested_starts(const std::vector<Dfa>& rules, RuleId rule, Work& work) {
  std::vector<RuleId> found = {rule};
  std::vector<bool> seen(rules.size(), false);
  seen[rule] = true;
  work.spend(2 + rules.size() / 256);
  for (std::size_t i = 0; i < found.size() && i <= Grammar::kMaxNestedStarts; ++i) {
    work.spend(1 + rules[found[i]].states[0].calls.size());
    for (const Dfa::Call& call : rules[found[i]].states[0].calls) {
      if (seen[call.rule]) continue;
      seen[call.rule] = true;
      found.push_back(call.rule);
    }
  }
  return found.size();
}

struct ByteClasses {
  std::array<std::uint8_t, 256> of{};
  std::size_t count = 0;
};

/// Bytes that every state treats alike share a class.
ByteClasses byte_classes(const std::vector<Dfa>& rules) {
  std::array<bool, 257> border{};
  for (const Dfa& rule : rules)
    for (const Dfa::State& state : rule.states)
      for (const Dfa::Edge& edge : state.edges) border[edge.low] = border[edge.high + 1] = true;
  ByteClasses classes;
  for (int byte = 0; byte < 256; ++byte) {
    if (byte > 0 && border[byte]) ++classes.count;
    classes.of[byte] = static_cast<std::uint8_t>(classes.count);
  }
  ++classes.count;
  return classes;
}

}  // namespace

Expected<Grammar> Grammar::link(const std::vector<Dfa>& rules, Work& work) {
  std::vector<Block> blocks;
  std::vector<std::size_t> block_of(rules.size());
  std::vector<bool> is_empty(rules.size(), false);
  for (RuleId rule = 0; rule < rules.size(); ++rule) {
    block_of[rule] = blocks.size();
    if (!rules[rule].counted) continue;
    blocks.push_back({.states = CountedStates(rules[rule], work)});
    is_empty[rule] = !blocks.back().states.is_alive(0, 0);
  }
  const Flags kept = Finishable(rules, is_empty, work).take();
  if (rules.empty() || !kept[0][0]) return refused("no text can satisfy the schema");
  if (calls_itself_first(rules))
    return refused("the schema refers to itself without an object or array between");

  std::vector<std::size_t> first_node(rules.size());
  std::size_t num_nodes = 0;
  bool is_first_called = false;
  for (RuleId rule = 0; rule < rules.size(); ++rule) {
    if (nested_starts(rules, rule, work) > kMaxNestedStarts)
      return refused("the schema has too many alternatives in one place");
    first_node[rule] = num_nodes;
    num_nodes += rules[rule].states.size();
    for (const Dfa::State& state : rules[rule].states)
      for (const Dfa::Call& call : state.calls) is_first_called = is_first_called || call.rule == 0;
  }
  for (RuleId rule = 0; rule < rules.size(); ++rule)
    check(!rules[rule].states[0].accepts || (rule == 0 && !is_first_called),
          "a rule that is called takes at least one byte");
  const ByteClasses classes = byte_classes(rules);
  if (num_nodes * classes.count > kMaxTableEntries)
    return refused(
        fmt::format("the schema needs {} states, more than the engine allows", num_nodes));
  work.spend(num_nodes * (2 + classes.count / 8));

  std::uint64_t next_counted = num_nodes;
  for (RuleId rule = 0; rule < rules.size(); ++rule) {
    if (!rules[rule].counted) continue;
    Block& block = blocks[block_of[rule]];
    block.first = static_cast<Node>(next_counted);
    block.state = static_cast<Node>(first_node[rule] + rules[rule].counted->first);
    next_counted += (std::uint64_t{block.states.last()} + 1) * block.states.num_states();
    if (next_counted >= kNowhere)
      return refused("the lengths of the schema's strings are too large together");
  }

  Grammar grammar;
  grammar.class_of_ = classes.of;
  grammar.num_classes_ = classes.count;
  grammar.next_.assign(num_nodes * classes.count, kNowhere);
  grammar.infos_.resize(num_nodes);
  for (std::size_t rule = 0; rule < rules.size(); ++rule) {
    const auto node_of = [&](std::uint32_t state) {
      return static_cast<Node>(first_node[rule] + state);
    };
    bool leaf = true;
    for (std::size_t at = 0; at < rules[rule].states.size(); ++at) {
      const Dfa::State& state = rules[rule].states[at];
      // Into what counts: to the same state after no characters.
      const bool enters = rules[rule].counted && at < rules[rule].counted->first;
      Info& info = grammar.infos_[first_node[rule] + at];
      info.ends = state.accepts;
      info.first_call = static_cast<std::uint32_t>(grammar.calls_.size());
      Node* const row = grammar.next_.data() + (first_node[rule] + at) * classes.count;
      for (const Dfa::Edge& edge : state.edges) {
        if (!kept[rule][edge.target]) continue;
        info.takes_bytes = true;
        std::fill(row + classes.of[edge.low], row + classes.of[edge.high] + 1,
                  enters ? blocks[block_of[rule]].first : node_of(edge.target));
      }
      for (const Dfa::Call& call : state.calls) {
        if (!kept[call.rule][0] || !kept[rule][call.target]) continue;
        grammar.calls_.push_back(
            {.start = static_cast<Node>(first_node[call.rule]), .then = node_of(call.target)});
        ++info.num_calls;
        leaf = false;
      }
    }
    for (std::size_t at = 0; at < rules[rule].states.size(); ++at)
      grammar.infos_[first_node[rule] + at].leaf = leaf;
  }
  grammar.blocks_ = std::move(blocks);
  return grammar;
}

Grammar::Place Grammar::place_of(Node node) const {
  const auto after = std::partition_point(blocks_.begin(), blocks_.end(),
                                          [&](const Block& block) { return block.first <= node; });
  const Block& block = *(after - 1);
  const auto num_states = static_cast<Node>(block.states.num_states());
  const Node offset = node - block.first;
  return {.block = block, .count = offset / num_states, .state = offset % num_states};
}

Grammar::Node Grammar::next_counted(Node node, std::uint8_t byte) const {
  const auto [block, count, state] = place_of(node);
  const Node target = entry(block.state + state, byte);
  if (target == kNowhere) return kNowhere;
  const auto num_states = static_cast<Node>(block.states.num_states());
  const Node next = target - block.state;
  if (next == num_states) return block.states.is_enough(count) ? target : kNowhere;
  const CountedStates::Count now = block.states.count_at(count, next);
  if (now > block.states.last() || !block.states.is_alive(now, next)) return kNowhere;
  return block.first + now * num_states + next;
}

Grammar::Node Grammar::representative(Node node, std::size_t horizon) const {
  if (node < infos_.size()) return node;
  const auto [block, count, state] = place_of(node);
  const auto num_states = static_cast<Node>(block.states.num_states());
  return block.first + block.states.representative(count, horizon) * num_states + state;
}

std::size_t Grammar::bytes() const {
  std::size_t bytes =
      next_.size() * sizeof(Node) + infos_.size() * sizeof(Info) + calls_.size() * sizeof(Call);
  for (const Block& block : blocks_) bytes += sizeof(Block) + block.states.bytes();
  return bytes;
}

}  // namespace gauntlet::engine::grammar
