// Which tokens may follow, found by walking the vocabulary and the grammar together. What a node of
// the grammar allows whatever its stack is kept; only tokens that leave the node's rule are walked
// again under each stack. The heads of a text that is very ambiguous are walked until that took too
// long; those that are left out narrow what may be written, but the mask stays one of the grammar.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "engine/grammar/grammar.h"
#include "engine/grammar/matcher.h"
#include "engine/grammar/vocabulary.h"

namespace gauntlet::engine::grammar {

using Mask = std::vector<std::uint32_t>;  // a bit per token id

/// Shared by all requests with one schema; any thread may ask.
class Masks {
 public:
  Masks(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const Vocabulary> vocabulary);

  const Grammar& grammar() const { return *grammar_; }
  const Vocabulary& vocabulary() const { return *vocabulary_; }

  /// The tokens that keep the text a beginning of one the grammar has; the end ids where it may
  /// end.
  std::shared_ptr<const Mask> allowed(const Matcher& matcher) const;

  /// How often allowed() found its answer kept, walked only what leaves rules, or walked it all.
  struct Counts {
    std::int64_t kept = 0;
    std::int64_t made = 0;
    std::int64_t nodes_walked = 0;
  };
  Counts counts() const;
  /// Memory held by the grammar and what is kept, without the vocabulary.
  std::size_t bytes() const;

 private:
  struct NodeMask {
    Mask inside;                       // tokens that end within the rule or at its end
    std::vector<std::uint32_t> exits;  // trie nodes at which the rule may end and tokens go on
    std::size_t steps = 0;             // that finding these took
  };
  struct KeyHash {
    std::size_t operator()(const std::vector<std::uint32_t>& key) const;
  };
  struct Walk {
    std::uint32_t begin = 0;  // trie nodes
    std::uint32_t end = 0;
    std::size_t depth = 0;  // of the state the walk starts from
  };

  std::shared_ptr<const NodeMask> node_mask(Grammar::Node head) const;
  void walk_leaf(Grammar::Node node, NodeMask& out) const;
  /// Returns the steps it took: heads moved over a byte.
  std::size_t walk(Stacks& stacks, const Heads& from, const Walk& part, Mask& mask,
                   std::vector<std::uint32_t>* exits) const;
  Mask make(const Matcher& matcher) const;

  std::shared_ptr<const Grammar> grammar_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::size_t max_kept_;  // of each of the two below
  mutable std::mutex mutex_;
  mutable std::unordered_map<std::vector<std::uint32_t>, std::shared_ptr<const Mask>, KeyHash>
      kept_;
  mutable std::unordered_map<Grammar::Node, std::shared_ptr<const NodeMask>> nodes_;
  mutable Counts counts_;
};

}  // namespace gauntlet::engine::grammar
