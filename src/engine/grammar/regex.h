// Regular expressions as automata: a schema's `pattern` over the inside of a JSON string, or a
// whole answer's text.
#pragma once
#include <string_view>

#include "core/expected.h"
#include "engine/grammar/automata.h"

namespace gauntlet::engine::grammar {

/// The texts of an automaton that have so many characters.
struct Pattern {
  Dfa dfa;
  Repetitions length;
};

/// ECMA-262 without back references, \b, \p, and look-around but for look-aheads that follow ^:
/// found anywhere in the string unless ^ and $ (only at the ends of a top-level alternative) hold
/// it. The error says what is refused.
Expected<Pattern> compile_pattern(std::string_view pattern, Work& work);

/// The same, of text that is not within JSON and matches from its beginning to its end.
Expected<Dfa> compile_whole_text(std::string_view pattern, Work& work);

}  // namespace gauntlet::engine::grammar
