// What a schema asks of a string, and of the names of an object's members.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/grammar/json_rules.h"
#include "engine/grammar/regex.h"
#include "engine/grammar/schema_merge.h"

namespace gauntlet::engine::grammar {

class StringRules {
 public:
  /// Both outlive this.
  StringRules(Scope& scope, RuleBook& book) : scope_(scope), book_(book) {}

  /// The strings that a flat schema admits.
  RuleId strings(const Schema& schema, const std::string& path);
  /// Keys that `names`, a schema, admits and that are none of the properties, in canonical spelling
  /// so that none slips by.
  RuleId other_keys(const Schema& properties, const Schema& names, const std::string& path);
  /// Whether `names`, a schema, admits this one.
  bool is_name(const Schema& names, const std::string& name, const std::string& path);

 private:
  /// Of content between quotes; without an automaton, any.
  struct Content {
    std::optional<Dfa> dfa;
    Repetitions length;
    bool is_full = false;  // to narrow it further took too much work
  };
  Content content_of(const Schema& schema, const std::string& path);
  Content name_content(const Schema& names, const std::string& path);
  /// False, and nothing changes, where that would take too much work.
  bool narrow(Content& content, const Dfa& by);
  void narrow(Content& content, const std::string& pattern, const std::string& path);
  const Expected<Pattern>& compiled(const std::string& pattern);
  Dfa texts(const std::vector<std::string>& list);

  Scope& scope_;
  RuleBook& book_;
  std::map<std::string, Expected<Pattern>> patterns_;
};

}  // namespace gauntlet::engine::grammar
