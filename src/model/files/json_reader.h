// Untrusted JSON: bounded in size and depth, and a key given twice is an error instead of a
// surprise.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "core/expected.h"

namespace gauntlet::model::inline files {

/// The object in `text`. `where` names the file in errors.
Expected<nlohmann::json> parse_json_object(std::string_view text, std::string_view where);

/// Reads the fields of one object and keeps the first thing that is wrong with them, so that a
/// reader asks for all fields and looks once.
class JsonFields {
 public:
  /// `where` opens every error: "config.json", "config.json: rope_scaling".
  JsonFields(const nlohmann::json& object, std::string where);

  bool has(const char* key) const;  // and it is not null
  std::int64_t integer(const char* key);
  std::int64_t integer_or(const char* key, std::int64_t otherwise);
  double number(const char* key);
  double number_or(const char* key, double otherwise);
  std::string text(const char* key);

  void refuse(std::string what);
  void refuse_as(const Error& error);  // of a nested object
  bool failed() const { return !message_.empty(); }
  Error error() const { return {.message = message_}; }

 private:
  const nlohmann::json& object_;
  std::string where_;
  std::string message_;
};

}  // namespace gauntlet::model::inline files
