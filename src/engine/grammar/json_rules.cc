#include "engine/grammar/json_rules.h"

#include "core/check.h"
#include "engine/grammar/characters.h"
#include "engine/grammar/numbers.h"

namespace gauntlet::engine::grammar {

using State = Nfa::State;

namespace {

Dfa made(const std::function<void(Nfa&, State, State)>& part) {
  auto dfa = dfa_of(part);
  check(dfa.has_value(), "the rules of JSON are small");
  return std::move(*dfa);
}

}  // namespace

RuleBook::Named RuleBook::named(const std::string& name) {
  const auto [found, fresh] = names_.try_emplace(name, static_cast<RuleId>(rules_.size()));
  if (fresh) rules_.emplace_back();
  return {.id = found->second, .fresh = fresh};
}

void RuleBook::gap(Nfa& nfa, State from, State to) {
  const Named indent = named("new line");
  if (indent.fresh)
    set(indent.id, made([](Nfa& inner, State a, State b) {
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
    set(rule.id, made([](Nfa& nfa, State a, State b) {
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
    set(rule.id, made([this](Nfa& nfa, State a, State b) {
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
    set(rule.id, made([this](Nfa& nfa, State a, State b) {
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
  if (number.fresh) {
    auto dfa = compile_numbers({});
    check(dfa.has_value(), "the rules of JSON are small");
    set(number.id, std::move(*dfa));
  }
  set(rule.id, made([&, this](Nfa& nfa, State a, State b) {
        for (const std::string_view word : {"true", "false", "null"}) nfa.text(a, b, word);
        for (const RuleId called : {any_string(), number.id, any_object(), any_array()})
          nfa.call(a, b, called);
      }));
  return rule.id;
}

std::optional<Dfa> any_content(const Repetitions& length) {
  return dfa_of([&](Nfa& nfa, State a, State b) {
    nfa.repeat(a, b, length,
               [&](State c, State d) { canonical_character(nfa, c, d, all_characters()); });
  });
}

}  // namespace gauntlet::engine::grammar
