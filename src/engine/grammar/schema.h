// A JSON schema as a grammar of the texts that satisfy it.
#pragma once
#include <string_view>

#include "core/expected.h"
#include "engine/grammar/grammar.h"

namespace gauntlet::engine::grammar {

/// Every text of the grammar is JSON that satisfies the schema (see README.md for which of those
/// texts it has). The text, not a parsed value: the order of properties is that of the output. The
/// error, a wrong use, names the keyword and its place.
Expected<Grammar> compile_schema(std::string_view schema);

/// Any JSON object.
Expected<Grammar> compile_json_object();

}  // namespace gauntlet::engine::grammar
