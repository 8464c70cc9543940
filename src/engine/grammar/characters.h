// Characters as a JSON string spells them in UTF-8: sets of code points become bytes.
#pragma once
#include <vector>

#include "engine/grammar/automata.h"

namespace gauntlet::engine::grammar {

struct CodeRange {
  char32_t low = 0;
  char32_t high = 0;
};

/// Code points, rising and disjoint; never a surrogate, which no UTF-8 can spell.
using CodeSet = std::vector<CodeRange>;

CodeSet normalized(CodeSet set);
CodeSet complement(const CodeSet& set);
CodeSet all_characters();

/// A character of the set in its one canonical spelling: itself where JSON allows that, else the
/// short escape, else \u00xx.
void canonical_character(Nfa& nfa, Nfa::State from, Nfa::State to, const CodeSet& set);

/// A character of the set as it is, outside of JSON.
void raw_character(Nfa& nfa, Nfa::State from, Nfa::State to, const CodeSet& set);

/// Any character in any spelling JSON has, surrogate pairs in escapes included.
void any_character(Nfa& nfa, Nfa::State from, Nfa::State to);

}  // namespace gauntlet::engine::grammar
