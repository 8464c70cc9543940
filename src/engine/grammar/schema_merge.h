// What several schemas ask of one value, as one schema.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/grammar/schema.h"
#include "engine/grammar/work.h"

namespace gauntlet::engine::grammar {

using Schema = nlohmann::ordered_json;

/// Thrown while a schema is compiled; becomes the error of compile_schema().
struct Refusal {
  std::string why;
};
[[noreturn]] void refuse(const std::string& path, const std::string& why);

/// The schema that is being compiled, as all its parts see it.
struct Scope {
  const Schema& root;
  Work& work;
  Unenforced unenforced = Unenforced::refused;
  std::vector<std::string> notes;  // what is not enforced, and where

  /// Refuses, or notes and goes on without it.
  void cannot_enforce(const std::string& path, const std::string& what, const std::string& why);
};

/// Nodes and text of a schema, as copying it costs.
std::size_t weight_of(const Schema& schema);

/// True for keywords that say nothing about which values are valid.
bool is_annotation(const std::string& keyword);
/// Refuses what is not a schema and keywords of the wrong form; those that are not supported cannot
/// be enforced.
void check_keywords(Scope& scope, const Schema& schema, const std::string& path);
/// A schema, however it says so, that no value satisfies.
bool admits_nothing(const Schema& schema);

/// What a $ref points at within the root.
const Schema& resolve(Scope& scope, const std::string& reference, const std::string& path);

/// Without $ref and allOf: those are merged in. Older drafts' words become those of 2020-12. Leaves
/// the properties' own schemas alone but for those that both sides have.
Schema flattened(Scope& scope, const Schema& schema, const std::string& path);
Schema merged(Scope& scope, const Schema& first, const Schema& second, const std::string& path);

/// JSON type names a value may have: those it says, else those its keywords are about, else all.
std::vector<std::string> types_of(const Schema& schema);
/// "integer" for numbers without a fraction.
std::string type_of(const Schema& value);

/// No value satisfies both: by type, by const or enum, or by those of a property both require.
bool are_disjoint(Scope& scope, const Schema& first, const Schema& second, const std::string& path);

}  // namespace gauntlet::engine::grammar
