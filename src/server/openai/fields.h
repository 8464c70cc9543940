// The fields of a JSON object from outside, each checked for type and range. The first fault is
// kept, and everything read after it is absent, so that a parser reads like a list of its fields.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/api_error.h"

namespace gauntlet::server::inline openai {

/// In the client's order, which the types of tools are shown in.
using Json = nlohmann::ordered_json;

/// A body as JSON: an object, nested no deeper and no wider than any walk over it can bear.
ApiResult<Json> parse_body(std::string_view text);
/// As text. Tokens may be parts of characters, which JSON cannot hold: those are replaced.
std::string dump(const Json& value);

struct IntegerRange {
  std::int64_t low;
  std::int64_t high;
};
struct NumberRange {
  double low;
  double high;
};

class Fields {
 public:
  /// `path` names the object in errors: empty for the body, or as in "messages[2]". All outlive
  /// this.
  Fields(const Json& object, std::string path, std::optional<ApiError>& fault);

  // None of these finds a field that is null.
  const Json* find(const std::string& name);
  std::optional<bool> boolean(const std::string& name);
  std::optional<std::int64_t> integer(const std::string& name, IntegerRange range);
  std::optional<double> number(const std::string& name, NumberRange range);
  std::optional<std::string> text(const std::string& name);
  const Json* list(const std::string& name, std::size_t max_size);
  const Json* object(const std::string& name);
  std::optional<std::string> choice(const std::string& name,
                                    const std::vector<std::string>& choices);

  /// The fields of an object within this one, with the same fault.
  Fields within(const Json& object, const std::string& name);

  void refuse(const std::string& name, const std::string& message);
  /// After everything was asked for: what was not is refused, unless it is null.
  void refuse_unknown();
  std::string path_of(const std::string& name) const;

 private:
  const Json& object_;
  std::string path_;
  std::optional<ApiError>& fault_;
  std::vector<std::string> known_;
};

/// An element that must be an integer, as in a list of token ids.
std::optional<std::int64_t> integer_within(const Json& value, IntegerRange range);

}  // namespace gauntlet::server::inline openai
