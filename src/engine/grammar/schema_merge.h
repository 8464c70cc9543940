// What several schemas ask of one value, as one schema.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace gauntlet::engine::grammar {

using Schema = nlohmann::ordered_json;

/// Thrown while a schema is compiled; becomes the error of compile_schema().
struct Refusal {
  std::string why;
};
[[noreturn]] void refuse(const std::string& path, const std::string& why);

/// True for keywords that say nothing about which values are valid.
bool is_annotation(const std::string& keyword);
/// Refuses what is not a schema, and keywords that are not supported or have the wrong form.
void check_keywords(const Schema& schema, const std::string& path);

/// What a $ref points at within the root.
const Schema& resolve(const Schema& root, const std::string& reference, const std::string& path);

/// Without $ref and allOf: those are merged in. Leaves the properties' own schemas alone but for
/// those that both sides have.
Schema flattened(const Schema& root, const Schema& schema, const std::string& path);
Schema merged(const Schema& root, const Schema& first, const Schema& second,
              const std::string& path);

/// JSON type names a value may have: those it says, else those its keywords are about, else all.
std::vector<std::string> types_of(const Schema& schema);
/// "integer" for numbers without a fraction.
std::string type_of(const Schema& value);

/// No value satisfies both: by type, by const or enum, or by those of a property both require.
bool are_disjoint(const Schema& root, const Schema& first, const Schema& second,
                  const std::string& path);

}  // namespace gauntlet::engine::grammar
