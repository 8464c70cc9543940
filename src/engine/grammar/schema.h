// A JSON schema as a grammar of the texts that satisfy it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/expected.h"
#include "engine/grammar/grammar.h"

namespace gauntlet::engine::grammar {

/// What becomes of the parts of a schema that a grammar cannot hold a text to.
enum class Unenforced { refused, noted };

struct CompiledSchema {
  Grammar grammar;
  std::vector<std::string> unenforced;  // as in "not at /properties/a"
  std::int64_t steps = 0;               // of work that compiling took
};

/// Every text of the grammar is JSON that satisfies the schema but for what is noted (see README.md
/// for which of those texts it has). The text, not a parsed value: the order of properties is that
/// of the output. The error, a wrong use, names the keyword and its place. Takes at most
/// Work::kMaxSteps, about 50 ms.
Expected<CompiledSchema> compile_schema(std::string_view schema, Unenforced unenforced);
/// Refuses what it cannot enforce.
Expected<Grammar> compile_schema(std::string_view schema);

/// Any JSON object.
Expected<Grammar> compile_json_object();

/// Texts that match a regular expression from their beginning to their end.
Expected<Grammar> compile_regex(std::string_view pattern);

/// One of these texts.
Expected<Grammar> compile_choice(const std::vector<std::string>& texts);

}  // namespace gauntlet::engine::grammar
