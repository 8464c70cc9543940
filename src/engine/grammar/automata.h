// Finite automata over bytes whose edges may also call a rule: what each rule of a grammar is built
// from. Every construction is bounded, so that a hostile schema ends in an error, not in memory.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace gauntlet::engine::grammar {

using RuleId = std::uint32_t;

/// A range of repetitions; without `max`, any number from `min` on.
struct Repetitions {
  std::int64_t min = 0;
  std::optional<std::int64_t> max;
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
  std::vector<State> states;
};

/// Parts are put between two states. Once it has kMaxStates it takes nothing more and says so.
class Nfa {
 public:
  using State = std::uint32_t;
  using Part = std::function<void(State from, State to)>;

  State add();
  void empty(State from, State to);
  void bytes(State from, State to, std::uint8_t low, std::uint8_t high);
  void text(State from, State to, std::string_view text);
  void call(State from, State to, RuleId rule);
  void embed(State from, State to, const Dfa& dfa);
  void optional(State from, State to, const Part& part);
  void repeat(State from, State to, const Repetitions& times, const Part& part);

  bool overflowed() const { return overflowed_; }
  /// Nothing where it overflowed or would need too many states.
  std::optional<Dfa> determinize(State start, State accept) const;

 private:
  static constexpr std::size_t kMaxStates = 400'000;
  struct Edge {
    enum class Kind : std::uint8_t { empty, bytes, call };
    Kind kind = Kind::empty;
    std::uint8_t low = 0;
    std::uint8_t high = 0;
    RuleId rule = 0;
    State target = 0;
  };
  using Set = std::vector<State>;

  void close(Set& set, std::vector<std::uint32_t>& seen, std::uint32_t mark) const;

  std::vector<std::vector<Edge>> edges_;
  bool overflowed_ = false;
};

/// The automaton of one part alone.
std::optional<Dfa> dfa_of(const std::function<void(Nfa&, Nfa::State from, Nfa::State to)>& part);

enum class Product { both, first_without_second };

/// Of automata without calls. Nothing where it would need too many states.
std::optional<Dfa> combine(const Dfa& first, const Dfa& second, Product product);

bool accepts(const Dfa& dfa, std::string_view text);

}  // namespace gauntlet::engine::grammar
