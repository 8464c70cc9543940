// A schema's `pattern` as an automaton over the inside of a JSON string.
#pragma once
#include <string_view>

#include "core/expected.h"
#include "engine/grammar/automata.h"

namespace gauntlet::engine::grammar {

/// ECMA-262 without look-around, back references, \b and \p: found anywhere in the string unless ^
/// and $ (only at the ends of a top-level alternative) hold it. The error says what is refused.
Expected<Dfa> compile_pattern(std::string_view pattern);

}  // namespace gauntlet::engine::grammar
