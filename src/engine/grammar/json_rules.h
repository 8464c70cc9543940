// The rules every schema is built from: any JSON value, strings, members, white space.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/grammar/automata.h"

namespace gauntlet::engine::grammar {

/// Rules as they are made. One that is asked for by its name twice is made once.
class RuleBook {
 public:
  /// The work outlives this.
  explicit RuleBook(Work& work) : work_(work) {}

  /// The rule's id, and whether it is new and still has to be set.
  struct Named {
    RuleId id = 0;
    bool fresh = false;
  };
  Named named(const std::string& name);
  void set(RuleId rule, Dfa dfa) { rules_[rule] = std::move(dfa); }
  const std::vector<Dfa>& rules() const { return rules_; }

  RuleId any_value();
  RuleId any_object();
  RuleId any_array();
  RuleId any_string();

  /// What may stand between a string's quotes, in canonical spelling: state 0 alone is between two
  /// characters.
  const Dfa& any_content();
  /// A string with such a content, of so many characters.
  Dfa quoted(const Dfa& content, const Repetitions& length);

  /// White space where JSON allows it and models like it: nothing, a space, or a new line and at
  /// most kMaxIndent spaces. After a colon only nothing or a space.
  void gap(Nfa& nfa, Nfa::State from, Nfa::State to);
  void colon(Nfa& nfa, Nfa::State from, Nfa::State to);

 private:
  static constexpr int kMaxIndent = 40;

  Work& work_;
  std::map<std::string, RuleId> names_;
  std::vector<Dfa> rules_;
  std::optional<Dfa> any_content_;
};

}  // namespace gauntlet::engine::grammar
