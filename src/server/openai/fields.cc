#include "server/openai/fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/text/text.h"

namespace gauntlet::server::inline openai {
namespace {

constexpr std::size_t kMaxQuoted = 200;
constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxFields = 2048;  // of one object: each is compared with all before it

/// Bounds what a parser would build, before it does. Text that is not JSON may be counted wrong,
/// and the parser refuses it.
std::optional<ApiError> check_size(std::string_view text) {
  std::array<std::size_t, kMaxDepth + 1> num_fields{};
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxDepth) {
        return ApiError{.message = fmt::format("the body nests deeper than {} levels", kMaxDepth)};
      }
      num_fields[depth] = 0;
    } else if (c == ']' || c == '}') {
      depth -= depth > 0 ? 1 : 0;
    } else if (c == ':' && ++num_fields[depth] > kMaxFields) {
      return ApiError{.message =
                          fmt::format("an object of the body has more than {} fields", kMaxFields)};
    }
  }
  return std::nullopt;
}

std::string shown(const std::string& name) {
  constexpr std::size_t kMaxShown = 64;
  return name.size() <= kMaxShown ? name : name.substr(0, kMaxShown) + "...";
}

}  // namespace

ApiResult<Json> parse_body(std::string_view text) {
  if (auto fault = check_size(text)) return *fault;
  try {
    Json body = Json::parse(text);
    if (body.is_object()) return body;
    return ApiError{.message = "the body must be a JSON object"};
  } catch (const Json::exception& error) {
    std::string_view why = error.what();
    if (const auto after_tag = why.find("] "); after_tag != why.npos)
      why.remove_prefix(after_tag + 2);
    // It quotes what was read last, be it megabytes of a string.
    return ApiError{.message = fmt::format("the body is not JSON: {}", why.substr(0, kMaxQuoted))};
  }
}

std::string dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Fields::Fields(const Json& object, std::string path, std::optional<ApiError>& fault)
    : object_(object), path_(std::move(path)), fault_(fault) {
  if (!object_.is_object() && !fault_) {
    fault_ = ApiError{.message = fmt::format("{} must be an object", shown(path_)),
                      .param = shown(path_)};
  }
}

Fields Fields::within(const Json& object, const std::string& name) {
  return Fields(object, path_of(name), fault_);
}

std::string Fields::path_of(const std::string& name) const {
  return path_.empty() ? name : path_ + "." + name;
}

void Fields::refuse(const std::string& name, const std::string& message) {
  if (fault_) return;
  const std::string path = shown(path_of(name));
  fault_ = ApiError{.message = fmt::format("{} {}", path, message), .param = path};
}

const Json* Fields::find(const std::string& name) {
  known_.push_back(name);
  if (fault_) return nullptr;
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

std::optional<bool> Fields::boolean(const std::string& name) {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  refuse(name, "must be true or false");
  return std::nullopt;
}

std::optional<std::int64_t> integer_within(const Json& value, IntegerRange range) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() &&
      value.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
    return std::nullopt;
  }
  const auto integer = value.get<std::int64_t>();
  if (integer < range.low || integer > range.high) return std::nullopt;
  return integer;
}

std::optional<std::int64_t> Fields::integer(const std::string& name, IntegerRange range) {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  const auto integer = integer_within(*value, range);
  if (!integer) {
    refuse(name, fmt::format("must be an integer between {} and {}", range.low, range.high));
  }
  return integer;
}

std::optional<double> Fields::number(const std::string& name, NumberRange range) {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  if (value->is_number()) {
    const double number = value->get<double>();
    if (number >= range.low && number <= range.high) return number;
  }
  refuse(name, fmt::format("must be a number between {} and {}", range.low, range.high));
  return std::nullopt;
}

std::optional<std::string> Fields::text(const std::string& name) {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  refuse(name, "must be a string");
  return std::nullopt;
}

const Json* Fields::list(const std::string& name, std::size_t max_size) {
  const Json* value = find(name);
  if (!value) return nullptr;
  if (value->is_array() && value->size() <= max_size) return value;
  refuse(name, fmt::format("must be a list of at most {} elements", max_size));
  return nullptr;
}

const Json* Fields::object(const std::string& name) {
  const Json* value = find(name);
  if (!value || value->is_object()) return value;
  refuse(name, "must be an object");
  return nullptr;
}

std::optional<std::string> Fields::choice(const std::string& name,
                                          const std::vector<std::string>& choices) {
  auto word = text(name);
  if (!word || std::ranges::find(choices, *word) != choices.end()) return word;
  refuse(name, fmt::format("must be one of {}", fmt::join(choices, ", ")));
  return std::nullopt;
}

void Fields::refuse_unknown() {
  if (fault_) return;
  for (const auto& [name, value] : object_.items()) {
    // Clients write out what they have no value for, of fields that are younger than this server.
    if (value.is_null() || std::ranges::find(known_, name) != known_.end()) continue;
    const std::string near = nearest(shown(name), known_);
    refuse(name, near.empty() ? "is not a field that this server knows"
                              : fmt::format("is not a field that this server knows, did you mean "
                                            "'{}'?",
                                            near));
    fault_->code = "unknown_parameter";
    return;
  }
}

}  // namespace gauntlet::server::inline openai
