#include "engine/grammar/grammar.h"

#include <fmt/format.h>

#include <algorithm>

namespace gauntlet::engine::grammar {
namespace {

constexpr std::size_t kMaxTableEntries = 8u << 20;

Error refused(std::string why) { return {.message = std::move(why), .kind = ErrorKind::wrong_use}; }

using Flags = std::vector<std::vector<bool>>;  // [rules, states]

/// The states from which the end of their rule can be reached.
Flags finishable(const std::vector<Dfa>& rules) {
  Flags flags(rules.size());
  for (std::size_t rule = 0; rule < rules.size(); ++rule)
    flags[rule].assign(rules[rule].states.size(), false);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t rule = rules.size(); rule-- > 0;) {
      for (std::size_t at = rules[rule].states.size(); at-- > 0;) {
        if (flags[rule][at]) continue;
        const Dfa::State& state = rules[rule].states[at];
        const bool now =
            state.accepts ||
            std::any_of(state.edges.begin(), state.edges.end(),
                        [&](const Dfa::Edge& edge) { return flags[rule][edge.target]; }) ||
            std::any_of(state.calls.begin(), state.calls.end(), [&](const Dfa::Call& call) {
              return flags[call.rule][0] && flags[rule][call.target];
            });
        if (now) flags[rule][at] = changed = true;
      }
    }
  }
  return flags;
}

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
std::size_t nested_starts(const std::vector<Dfa>& rules, RuleId rule) {
  std::vector<RuleId> found = {rule};
  std::vector<bool> seen(rules.size(), false);
  seen[rule] = true;
  for (std::size_t i = 0; i < found.size() && i <= Grammar::kMaxNestedStarts; ++i) {
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

Expected<Grammar> Grammar::link(const std::vector<Dfa>& rules) {
  const Flags kept = finishable(rules);
  if (rules.empty() || !kept[0][0]) return refused("no text can satisfy the schema");
  if (calls_itself_first(rules))
    return refused("the schema refers to itself without an object or array between");

  for (RuleId rule = 0; rule < rules.size(); ++rule)
    if (nested_starts(rules, rule) > kMaxNestedStarts)
      return refused("the schema has too many alternatives in one place");

  std::vector<std::size_t> first_node(rules.size());
  std::size_t num_nodes = 0;
  for (std::size_t rule = 0; rule < rules.size(); ++rule) {
    check(!rules[rule].states[0].accepts, "a rule takes at least one byte");
    first_node[rule] = num_nodes;
    num_nodes += rules[rule].states.size();
  }
  const ByteClasses classes = byte_classes(rules);
  if (num_nodes >= kNowhere || num_nodes * classes.count > kMaxTableEntries)
    return refused(
        fmt::format("the schema needs {} states, more than the engine allows", num_nodes));

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
      Info& info = grammar.infos_[first_node[rule] + at];
      info.ends = state.accepts;
      info.first_call = static_cast<std::uint32_t>(grammar.calls_.size());
      Node* const row = grammar.next_.data() + (first_node[rule] + at) * classes.count;
      for (const Dfa::Edge& edge : state.edges) {
        if (!kept[rule][edge.target]) continue;
        info.takes_bytes = true;
        std::fill(row + classes.of[edge.low], row + classes.of[edge.high] + 1,
                  node_of(edge.target));
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
  return grammar;
}

}  // namespace gauntlet::engine::grammar
