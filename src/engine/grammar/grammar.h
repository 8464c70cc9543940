// A compiled grammar: rules as deterministic automata in one table, which call each other. Made
// once per schema and shared by its requests.
#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/expected.h"
#include "engine/grammar/automata.h"
#include "engine/grammar/counted.h"

namespace gauntlet::engine::grammar {

class Grammar {
 public:
  /// A state of a rule; of a rule that counts, a state with a count, which has no place in a table.
  using Node = std::uint32_t;
  static constexpr Node kNowhere = std::numeric_limits<Node>::max();

  /// How many rules may start where one starts, through calls.
  static constexpr std::size_t kMaxNestedStarts = 1024;

  struct Call {
    Node start = 0;
    Node then = 0;
  };

  /// Rule 0 is the whole text, and may be empty where no other calls it. What leads to no end is
  /// cut away, so that every way that is left can be finished. Holds an error where nothing is
  /// left, where a rule calls itself before it takes a byte, or where it would be too large.
  static Expected<Grammar> link(const std::vector<Dfa>& rules, Work& work);

  Node start() const { return start_; }
  Node next(Node node, std::uint8_t byte) const {
    if (node < infos_.size()) return entry(node, byte);
    return next_counted(node, byte);
  }
  bool ends_rule(Node node) const { return node < infos_.size() && infos_[node].ends; }
  bool takes_bytes(Node node) const { return node >= infos_.size() || infos_[node].takes_bytes; }
  /// No call can be reached without leaving the rule.
  bool is_in_leaf_rule(Node node) const { return node >= infos_.size() || infos_[node].leaf; }
  std::span<const Call> calls(Node node) const {
    if (node >= infos_.size()) return {};
    return std::span(calls_).subspan(infos_[node].first_call, infos_[node].num_calls);
  }
  /// One node for all after which the same texts of up to `horizon` bytes may follow.
  Node representative(Node node, std::size_t horizon) const;

  std::size_t num_nodes() const { return infos_.size(); }
  std::size_t bytes() const;

 private:
  struct Info {
    std::uint32_t first_call = 0;
    std::uint32_t num_calls = 0;
    bool ends = false;
    bool takes_bytes = false;
    bool leaf = false;
  };
  struct Block {
    Node first = 0;  // of its states with counts: those with none, then those with one, ...
    Node state = 0;  // the first of its states in the table
    CountedStates states;
  };
  struct Place {
    const Block& block;
    CountedStates::Count count = 0;
    std::uint32_t state = 0;
  };

  Node entry(Node node, std::uint8_t byte) const {
    return next_[std::size_t{node} * num_classes_ + class_of_[byte]];
  }
  Node next_counted(Node node, std::uint8_t byte) const;
  Place place_of(Node node) const;

  Node start_ = 0;
  std::size_t num_classes_ = 0;
  std::array<std::uint8_t, 256> class_of_{};
  std::vector<Node> next_;  // [nodes, classes]
  std::vector<Info> infos_;
  std::vector<Call> calls_;
  std::vector<Block> blocks_;  // rising
};

}  // namespace gauntlet::engine::grammar
