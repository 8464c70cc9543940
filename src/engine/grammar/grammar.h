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

namespace gauntlet::engine::grammar {

class Grammar {
 public:
  using Node = std::uint16_t;
  static constexpr Node kNowhere = std::numeric_limits<Node>::max();

  /// How many rules may start where one starts, through calls.
  static constexpr std::size_t kMaxNestedStarts = 1024;

  struct Call {
    Node start = 0;
    Node then = 0;
  };

  /// Rule 0 is the whole text. What leads to no end is cut away, so that every way that is left can
  /// be finished. Holds an error where nothing is left, where a rule calls itself before it takes a
  /// byte, or where it would be too large.
  static Expected<Grammar> link(const std::vector<Dfa>& rules);

  Node start() const { return start_; }
  Node next(Node node, std::uint8_t byte) const {
    return next_[std::size_t{node} * num_classes_ + class_of_[byte]];
  }
  bool ends_rule(Node node) const { return infos_[node].ends; }
  bool takes_bytes(Node node) const { return infos_[node].takes_bytes; }
  /// No call can be reached without leaving the rule.
  bool is_in_leaf_rule(Node node) const { return infos_[node].leaf; }
  std::span<const Call> calls(Node node) const {
    return std::span(calls_).subspan(infos_[node].first_call, infos_[node].num_calls);
  }
  std::size_t num_nodes() const { return infos_.size(); }
  std::size_t bytes() const {
    return next_.size() * sizeof(Node) + infos_.size() * sizeof(Info) +
           calls_.size() * sizeof(Call);
  }

 private:
  struct Info {
    std::uint32_t first_call = 0;
    std::uint32_t num_calls = 0;
    bool ends = false;
    bool takes_bytes = false;
    bool leaf = false;
  };

  Node start_ = 0;
  std::size_t num_classes_ = 0;
  std::array<std::uint8_t, 256> class_of_{};
  std::vector<Node> next_;  // [nodes, classes]
  std::vector<Info> infos_;
  std::vector<Call> calls_;
};

}  // namespace gauntlet::engine::grammar
