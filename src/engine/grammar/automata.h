// Finite automata over bytes whose edges may also call a rule: what each rule of a grammar is built
// from. Every construction spends work, so that a hostile schema ends in an error, not in memory.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/grammar/work.h"

namespace gauntlet::engine::grammar {

using RuleId = std::uint32_t;

/// A range of repetitions; without `max`, any number from `min` on.
struct Repetitions {
  std::int64_t min = 0;
  std::optional<std::int64_t> max;

  bool operator==(const Repetitions&) const = default;
};

/// Deterministic: at most one edge per byte and one call per rule leave a state. State 0 starts.
struct Dfa {
  struct Edge {
    std::uint8_t low = 0;
    std::uint8_t high = 0;
    std::uint32_t target = 0;
  };
  struct Call {
    RuleId rule = 0;
    std::uint32_t target = 0;  // where it goes on once the rule has matched
  };
  struct State {
    std::vector<Edge> edges;  // rising, disjoint
    std::vector<Call> calls;  // rising by rule
    bool accepts = false;
  };
  /// The states from `first` on, but for the last of all, read characters, and only so many may be
  /// read: a state for each number of them would be a state per character of a long string.
  struct Counted {
    std::uint32_t first = 0;
    std::vector<bool> after_character;  // by state from `first`: a character ends there
    Repetitions times;
  };
  std::vector<State> states;
  std::optional<Counted> counted;  // of a rule that nothing is built from
};

/// Parts are put between two states.
class Nfa {
 public:
  using State = std::uint32_t;
  using Part = std::function<void(State from, State to)>;

  /// The work outlives this.
  explicit Nfa(Work& work) : work_(work) {}

  State add();
  void empty(State from, State to);
  void bytes(State from, State to, std::uint8_t low, std::uint8_t high);
  void text(State from, State to, std::string_view text);
  void call(State from, State to, RuleId rule);
  void embed(State from, State to, const Dfa& dfa);
  void optional(State from, State to, const Part& part);
  void repeat(State from, State to, const Repetitions& times, const Part& part);

  Dfa determinize(State start, State accept) const;

 private:
  struct Edge {
    enum class Kind : std::uint8_t { empty, bytes, call };
    Kind kind = Kind::empty;
    std::uint8_t low = 0;
    std::uint8_t high = 0;
    RuleId rule = 0;
    State target = 0;
  };
  using Set = std::vector<State>;

  void connect(State from, const Edge& edge);
  void close(Set& set, std::vector<std::uint32_t>& seen, std::uint32_t mark) const;

  Work& work_;
  std::vector<std::vector<Edge>> edges_;
};

/// The automaton of one part alone.
Dfa dfa_of(Work& work, const std::function<void(Nfa&, Nfa::State from, Nfa::State to)>& part);

enum class Product { both, first_without_second };

/// Of automata without calls. `on_state` is told, for each state in turn, which of the second's it
/// is beside.
Dfa combine(const Dfa& first, const Dfa& second, Product product, Work& work,
            const std::function<void(std::uint32_t second)>& on_state = {});

/// The same texts with as few states, of an automaton without calls.
Dfa minimized(const Dfa& dfa, Work& work);

/// Any number of texts of an automaton whose accepting states have no edges, one after the other:
/// state 0 is between two of them, and the only one that accepts.
Dfa looped(const Dfa& item);

bool accepts(const Dfa& dfa, std::string_view text);

}  // namespace gauntlet::engine::grammar
