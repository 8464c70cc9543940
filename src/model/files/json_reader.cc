#include "model/files/json_reader.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "model/files/printable.h"

namespace gauntlet::model::inline files {
namespace {

using nlohmann::json;

constexpr int kMaxReadDepth = 32;
constexpr std::size_t kMaxBytes = 64u << 20;

/// Sees keys and depth while the parser works; what it refuses is dropped and remembered.
class Watch {
 public:
  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    if (!fault_.empty()) return false;
    if (event == json::parse_event_t::object_start || event == json::parse_event_t::array_start) {
      if (depth >= kMaxReadDepth) {
        fault_ = fmt::format("is nested more than {} levels deep", kMaxReadDepth);
        return false;
      }
      if (event == json::parse_event_t::object_start) keys_.emplace_back();
    } else if (event == json::parse_event_t::object_end) {
      keys_.pop_back();
    } else if (event == json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys_.back().insert(key).second)
        fault_ = fmt::format("has the key '{}' twice", shown(key));
    }
    return fault_.empty();
  }
  const std::string& fault() const { return fault_; }

 private:
  std::vector<std::set<std::string>> keys_;  // of the objects that are open
  std::string fault_;
};

}  // namespace

Expected<json> parse_json_object(std::string_view text, std::string_view where) {
  if (text.size() > kMaxBytes) {
    return Error{.message = fmt::format("{} has {} bytes, more than the {} that are read as JSON",
                                        where, text.size(), kMaxBytes)};
  }
  Watch watch;
  const auto see = [&watch](int depth, json::parse_event_t event, json& parsed) {
    return watch(depth, event, parsed);
  };
  json parsed = json::parse(text, see, false);
  if (!watch.fault().empty()) {
    return Error{.message = fmt::format("{} {}", where, watch.fault())};
  }
  if (parsed.is_discarded()) return Error{.message = fmt::format("{} is not valid JSON", where)};
  if (!parsed.is_object()) return Error{.message = fmt::format("{} is not a JSON object", where)};
  return parsed;
}

JsonFields::JsonFields(const json& object, std::string where)
    : object_(object), where_(std::move(where)) {}

bool JsonFields::has(const char* key) const {
  const auto found = object_.find(key);
  return found != object_.end() && !found->is_null();
}

std::int64_t JsonFields::integer(const char* key) {
  const auto found = object_.find(key);
  if (found == object_.end()) {
    refuse(fmt::format("'{}' is missing", key));
    return 0;
  }
  const bool fits = found->is_number_unsigned()
                        ? found->get<std::uint64_t>() <= static_cast<std::uint64_t>(INT64_MAX)
                        : found->is_number_integer();
  if (!fits) {
    refuse(fmt::format("'{}' is not a whole number", key));
    return 0;
  }
  return found->get<std::int64_t>();
}

std::int64_t JsonFields::integer_or(const char* key, std::int64_t otherwise) {
  return has(key) ? integer(key) : otherwise;
}

double JsonFields::number(const char* key) {
  const auto found = object_.find(key);
  if (found == object_.end()) {
    refuse(fmt::format("'{}' is missing", key));
    return 0;
  }
  if (!found->is_number() || !std::isfinite(found->get<double>())) {
    refuse(fmt::format("'{}' is not a number", key));
    return 0;
  }
  return found->get<double>();
}

double JsonFields::number_or(const char* key, double otherwise) {
  return has(key) ? number(key) : otherwise;
}

std::string JsonFields::text(const char* key) {
  const auto found = object_.find(key);
  if (found == object_.end() || !found->is_string()) {
    refuse(fmt::format("'{}' is not a text", key));
    return {};
  }
  return found->get<std::string>();
}

void JsonFields::refuse(std::string what) {
  if (message_.empty()) message_ = fmt::format("{}: {}", where_, what);
}

void JsonFields::refuse_as(const Error& error) {
  if (message_.empty()) message_ = error.message;
}

}  // namespace gauntlet::model::inline files
