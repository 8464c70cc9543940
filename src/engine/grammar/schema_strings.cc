#include "engine/grammar/schema_strings.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/grammar/formats.h"

namespace gauntlet::engine::grammar {
namespace {

/// As it stands between quotes.
std::string spelled(const std::string& text) {
  const std::string quoted = Schema(text).dump();
  return quoted.substr(1, quoted.size() - 2);
}

std::int64_t num_characters(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; });
}

std::string name_of(const Schema& schema, std::initializer_list<const char*> keywords) {
  std::string name;
  for (const char* keyword : keywords)
    name += ' ' + (schema.contains(keyword) ? schema[keyword].dump() : "-");
  return name;
}

}  // namespace

RuleId StringRules::strings(const Schema& schema, const std::string& path) {
  const auto rule =
      book_.named("string" + name_of(schema, {"pattern", "format", "minLength", "maxLength"}));
  if (!rule.fresh) return rule.id;
  const Content content = content_of(schema, path);
  const Dfa& any = book_.any_content();
  book_.set(rule.id, book_.quoted(content.dfa ? *content.dfa : any, content.length));
  return rule.id;
}

StringRules::Content StringRules::content_of(const Schema& schema, const std::string& path) {
  Content content;
  bool has_pattern = false;
  if (schema.contains("pattern")) {
    const Schema& said = schema["pattern"];
    for (const Schema& one : said.is_array() ? said : Schema::array({said}))
      narrow(content, one.get<std::string>(), path);
    has_pattern = true;
  }
  if (schema.contains("format")) {
    const auto& format = schema["format"].get_ref<const std::string&>();
    if (const char* const pattern = pattern_of_format(format))
      narrow(content, pattern, path);
    else if (!has_pattern && !is_number_storage(format))
      scope_.cannot_enforce(path, "format " + format,
                            fmt::format("the format \"{}\" is not supported", format));
  }
  Repetitions& length = content.length;
  const auto bound = [&](const char* keyword) {
    const auto value = schema[keyword].get<std::int64_t>();
    if (value > CountedStates::kMaxCount)
      refuse(path, fmt::format("\"{}\" is more than {}", keyword, CountedStates::kMaxCount));
    return value;
  };
  if (schema.contains("minLength")) length.min = std::max(length.min, bound("minLength"));
  if (schema.contains("maxLength")) {
    const std::int64_t most = bound("maxLength");
    length.max = std::min(length.max.value_or(most), most);
  }
  if (length.max && *length.max < length.min)
    refuse(path, "\"maxLength\" is less than \"minLength\"");
  return content;
}

bool StringRules::narrow(Content& content, const Dfa& by) {
  if (!content.dfa) {
    content.dfa = by;
    return true;
  }
  if (content.is_full) return false;
  // A share, so that a schema's other parts can be held where one is too large.
  Work share(scope_.work.left() / 4);
  try {
    content.dfa = combine(*content.dfa, by, Product::both, share);
  } catch (const OutOfWork&) {
    content.is_full = true;
  }
  scope_.work.spend(static_cast<std::size_t>(std::min(share.used(), scope_.work.left())));
  return !content.is_full;
}

const Expected<Pattern>& StringRules::compiled(const std::string& pattern) {
  const auto found = patterns_.find(pattern);
  if (found != patterns_.end()) return found->second;
  Work share(scope_.work.left() / 2);  // as above
  auto fresh = compile_pattern(pattern, share);
  scope_.work.spend(static_cast<std::size_t>(std::min(share.used(), scope_.work.left())));
  return patterns_.emplace(pattern, std::move(fresh)).first->second;
}

void StringRules::narrow(Content& content, const std::string& pattern, const std::string& path) {
  const Expected<Pattern>& by = compiled(pattern);
  if (!by)
    return scope_.cannot_enforce(path, "pattern",
                                 fmt::format("\"pattern\": {}", by.error().message));
  if (!narrow(content, by->dfa))
    return scope_.cannot_enforce(path, "pattern",
                                 "this string is too complex: its patterns need too many states "
                                 "together");
  const Repetitions& length = by->length;
  content.length.min = std::max(content.length.min, length.min);
  if (length.max)
    content.length.max = std::min(content.length.max.value_or(*length.max), *length.max);
}

Dfa StringRules::texts(const std::vector<std::string>& list) {
  return dfa_of(scope_.work, [&](Nfa& nfa, Nfa::State a, Nfa::State b) {
    for (const std::string& text : list) nfa.text(a, b, spelled(text));
  });
}

StringRules::Content StringRules::name_content(const Schema& names, const std::string& path) {
  const std::string place = path + "/propertyNames";
  if (admits_nothing(names)) return {.dfa = texts({})};
  const Schema flat = flattened(scope_, names, place);
  const auto types = types_of(flat);
  if (std::find(types.begin(), types.end(), "string") == types.end()) return {.dfa = texts({})};
  Content content = content_of(flat, place);
  for (const char* keyword : {"enum", "const"}) {
    if (!flat.contains(keyword)) continue;
    std::vector<std::string> list;
    const Schema& said = flat[keyword];
    for (const Schema& one : keyword[0] == 'e' ? said : Schema::array({said}))
      if (one.is_string()) list.push_back(one.get<std::string>());
    if (!narrow(content, texts(list)))
      scope_.cannot_enforce(place, keyword, "the names are too complex: they need too many states");
  }
  for (const char* keyword : {"anyOf", "oneOf"})
    if (flat.contains(keyword))
      scope_.cannot_enforce(
          place, keyword, fmt::format("\"{}\" within \"propertyNames\" is not supported", keyword));
  return content;
}

bool StringRules::is_name(const Schema& names, const std::string& name, const std::string& path) {
  if (names == Schema(true)) return true;
  const Content content = name_content(names, path);
  const std::int64_t length = num_characters(name);
  return length >= content.length.min && length <= content.length.max.value_or(length) &&
         (!content.dfa || accepts(*content.dfa, spelled(name)));
}

RuleId StringRules::other_keys(const Schema& properties, const Schema& names,
                               const std::string& path) {
  std::string name = "key of " + names.dump() + " but";
  std::vector<std::string> named;
  for (const auto& [one, unused] : properties.items()) {
    named.push_back(one);
    name += ' ' + Schema(one).dump();
  }
  scope_.work.spend(name.size());
  const auto rule = book_.named(name);
  if (!rule.fresh) return rule.id;
  Content content = names == Schema(true) ? Content{} : name_content(names, path);
  const Dfa& any = content.dfa ? *content.dfa : book_.any_content();
  const Dfa others = combine(any, texts(named), Product::first_without_second, scope_.work);
  book_.set(rule.id, book_.quoted(others, content.length));
  return rule.id;
}

}  // namespace gauntlet::engine::grammar
