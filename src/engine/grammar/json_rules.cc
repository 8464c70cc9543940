#include "engine/grammar/json_rules.h"

#include "engine/grammar/characters.h"
#include "engine/grammar/numbers.h"

namespace gauntlet::engine::grammar {

using State = Nfa::State;

RuleBook::Named RuleBook::named(const std::string& name) {
  const auto [found, fresh] = names_.try_emplace(name, static_cast<RuleId>(rules_.size()));
  if (fresh) rules_.emplace_back();
  return {.id = found->second, .fresh = fresh};
}

void RuleBook::gap(Nfa& nfa, State from, State to) {
  const Named indent = named("new line");
  if (indent.fresh)
    set(indent.id, dfa_of(work_, [](Nfa& inner, State a, State b) {
          const State line = inner.add();
          inner.text(a, line, "\n");
          inner.repeat(line, b, {.min = 0, .max = kMaxIndent},
                       [&](State c, State d) { inner.text(c, d, " "); });
        }));
  nfa.empty(from, to);
  nfa.text(from, to, " ");
  nfa.call(from, to, indent.id);
}

void RuleBook::colon(Nfa& nfa, State from, State to) {
  const State after = nfa.add();
  nfa.text(from, after, ":");
  nfa.empty(after, to);
  nfa.text(after, to, " ");
}

RuleId RuleBook::any_string() {
  const Named rule = named("string");
  if (rule.fresh)
    set(rule.id, dfa_of(work_, [](Nfa& nfa, State a, State b) {
          const State open = nfa.add(), close = nfa.add();
          nfa.text(a, open, "\"");
          nfa.repeat(open, close, {}, [&](State c, State d) { any_character(nfa, c, d); });
          nfa.text(close, b, "\"");
        }));
  return rule.id;
}

RuleId RuleBook::any_object() {
  const Named rule = named("object");
  if (rule.fresh)
    set(rule.id, dfa_of(work_, [this](Nfa& nfa, State a, State b) {
          const State open = nfa.add(), key = nfa.add(), colon_at = nfa.add(), value = nfa.add(),
                      member = nfa.add(), comma = nfa.add(), close = nfa.add();
          nfa.text(a, open, "{");
          nfa.text(open, b, "}");
          gap(nfa, open, key);
          nfa.call(key, colon_at, any_string());
          colon(nfa, colon_at, value);
          nfa.call(value, member, any_value());
          nfa.text(member, comma, ",");
          gap(nfa, comma, key);
          gap(nfa, member, close);
          nfa.text(close, b, "}");
        }));
  return rule.id;
}

RuleId RuleBook::any_array() {
  const Named rule = named("array");
  if (rule.fresh)
    set(rule.id, dfa_of(work_, [this](Nfa& nfa, State a, State b) {
          const State open = nfa.add(), value = nfa.add(), item = nfa.add(), comma = nfa.add(),
                      close = nfa.add();
          nfa.text(a, open, "[");
          nfa.text(open, b, "]");
          gap(nfa, open, value);
          nfa.call(value, item, any_value());
          nfa.text(item, comma, ",");
          gap(nfa, comma, value);
          gap(nfa, item, close);
          nfa.text(close, b, "]");
        }));
  return rule.id;
}

RuleId RuleBook::any_value() {
  const Named rule = named("value");
  if (!rule.fresh) return rule.id;
  const Named number = named("number");
  if (number.fresh) set(number.id, compile_numbers({}, work_));
  set(rule.id, dfa_of(work_, [&, this](Nfa& nfa, State a, State b) {
        for (const std::string_view word : {"true", "false", "null"}) nfa.text(a, b, word);
        for (const RuleId called : {any_string(), number.id, any_object(), any_array()})
          nfa.call(a, b, called);
      }));
  return rule.id;
}

const Dfa& RuleBook::any_content() {
  if (!any_content_)
    any_content_ = looped(
        minimized(dfa_of(work_, [](Nfa& nfa, State a,
                                   State b) { canonical_character(nfa, a, b, all_characters()); }),
                  work_));
  return *any_content_;
}

Dfa RuleBook::quoted(const Dfa& content, const Repetitions& length) {
  constexpr std::uint8_t kQuote = '"';
  const bool is_counted = length != Repetitions{};
  // Beside any content, a content shows where its characters end.
  std::vector<bool> after_character;
  const auto see = [&](std::uint32_t beside) { after_character.push_back(beside == 0); };
  const Dfa body =
      is_counted ? combine(content, any_content(), Product::both, work_, see) : content;
  work_.spend(8 * body.states.size());
  const auto end = static_cast<std::uint32_t>(body.states.size()) + 1;
  Dfa rule;
  rule.states.resize(end + 1);
  rule.states[0].edges = {{.low = kQuote, .high = kQuote, .target = 1}};
  for (std::uint32_t at = 1; at < end; ++at) {
    const Dfa::State& from = body.states[at - 1];
    auto& edges = rule.states[at].edges;
    edges.reserve(from.edges.size() + 1);
    bool is_open = from.accepts;
    for (const Dfa::Edge& edge : from.edges) {
      if (is_open && edge.low > kQuote) {
        edges.push_back({.low = kQuote, .high = kQuote, .target = end});
        is_open = false;
      }
      edges.push_back({.low = edge.low, .high = edge.high, .target = edge.target + 1});
    }
    if (is_open) edges.push_back({.low = kQuote, .high = kQuote, .target = end});
  }
  rule.states[end].accepts = true;
  if (is_counted)
    rule.counted = {.first = 1, .after_character = std::move(after_character), .times = length};
  return rule;
}

}  // namespace gauntlet::engine::grammar
