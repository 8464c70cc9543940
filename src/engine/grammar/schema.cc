#include "engine/grammar/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>

#include "engine/grammar/json_rules.h"
#include "engine/grammar/numbers.h"
#include "engine/grammar/regex.h"
#include "engine/grammar/schema_merge.h"

namespace gauntlet::engine::grammar {
namespace {

using State = Nfa::State;

constexpr std::size_t kMaxSchemaBytes = 128u << 10;
constexpr std::size_t kMaxNestedBytes = 16u << 20;  // of all sub-schemas written out
constexpr int kMaxDepth = 64;
constexpr std::size_t kMaxRules = 8192;
constexpr std::size_t kMaxTotalStates = 60'000;
constexpr std::size_t kMaxOneOf = 64;

/// Dates are those of the calendar, leap years included; there is no 61st second.
const char* pattern_of_format(std::string_view format) {
#define GAUNTLET_DATE                                                                         \
  "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]" \
  "[0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:"   \
  "[02468][048]|[13579][26])00)-02-29)"
#define GAUNTLET_TIME                                                                          \
  "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):" \
  "[0-5][0-9])"
  if (format == "date") return "^" GAUNTLET_DATE "$";
  if (format == "time") return "^" GAUNTLET_TIME "$";
  if (format == "date-time") return "^" GAUNTLET_DATE "T" GAUNTLET_TIME "$";
  if (format == "uuid")
    return "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$";
  if (format == "email")
    return "^[A-Za-z0-9!#$%&'*+/=?\\^_`\\{|\\}~-]{1,32}(?:\\.[A-Za-z0-9!#$%&'*+/"
           "=?\\^_`\\{|\\}~-]{1,31"
           "})?@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?\\.){1,3}[A-Za-z0-9](?:[A-Za-z0-9-]"
           "{0,30}[A-Za-z0-9])?$";
#undef GAUNTLET_DATE
#undef GAUNTLET_TIME
  return nullptr;
}

class Compiler {
 public:
  explicit Compiler(const Schema& root) : root_(root) {}

  const std::vector<Dfa>& compile() {
    rule_of(root_, "#");
    std::size_t states = 0;
    while (!open_.empty()) {
      const Open next = std::move(open_.front());
      open_.pop_front();
      book_.set(next.rule, dfa_for(next.path, [&](Nfa& nfa, State from, State to) {
                  value(nfa, from, to, next.schema, next.path);
                }));
      states += book_.rules()[next.rule].states.size();
      if (states > kMaxTotalStates) refuse("#", "the schema needs too many states");
    }
    return book_.rules();
  }

 private:
  struct Open {
    RuleId rule = 0;
    Schema schema;
    std::string path;
  };

  template <class Part>
  Dfa dfa_for(const std::string& path, const Part& part) {
    return needed(dfa_of(part), path);
  }

  static Dfa needed(std::optional<Dfa> dfa, const std::string& path) {
    if (!dfa) refuse(path, "this part of the schema needs too many states");
    return std::move(*dfa);
  }

  /// The rule of a schema, which is compiled once however often and wherever it stands.
  RuleId rule_of(const Schema& schema, const std::string& path) {
    if (schema.is_boolean() && schema.get<bool>()) return book_.any_value();
    const std::string text = schema.dump();
    nested_bytes_ += text.size();
    if (nested_bytes_ > kMaxNestedBytes || book_.rules().size() > kMaxRules)
      refuse(path, "the schema is too large once its references are followed");
    const auto rule = book_.named(text);
    if (rule.fresh) open_.push_back({.rule = rule.id, .schema = schema, .path = path});
    return rule.id;
  }

  void value(Nfa& nfa, State from, State to, const Schema& schema, const std::string& path) {
    check_keywords(schema, path);
    if (schema.is_boolean()) {
      if (schema.get<bool>()) nfa.call(from, to, book_.any_value());
      return;
    }
    if (is_only(schema, "$ref")) {
      const auto& reference = schema["$ref"].get_ref<const std::string&>();
      return nfa.call(from, to, rule_of(resolve(root_, reference, path), reference));
    }
    const Schema flat = flattened(root_, schema, path);
    check_keywords(flat, path);
    if (flat.contains("anyOf") || flat.contains("oneOf"))
      alternatives(nfa, from, to, flat, path);
    else if (flat.contains("enum") || flat.contains("const"))
      literals(nfa, from, to, flat, path);
    else
      for (const std::string& type : types_of(flat)) typed(nfa, from, to, flat, type, path);
  }

  static bool is_only(const Schema& schema, const char* keyword) {
    if (!schema.contains(keyword)) return false;
    for (const auto& [name, unused] : schema.items())
      if (name != keyword && !is_annotation(name)) return false;
    return true;
  }

  void alternatives(Nfa& nfa, State from, State to, const Schema& flat, const std::string& path) {
    if (flat.contains("anyOf") && flat.contains("oneOf"))
      refuse(path, "\"anyOf\" beside \"oneOf\" is not supported");
    const char* const keyword = flat.contains("anyOf") ? "anyOf" : "oneOf";
    const Schema& list = flat[keyword];
    const auto place = [&](std::size_t i) { return fmt::format("{}/{}/{}", path, keyword, i); };
    if (keyword == std::string_view("oneOf")) {
      if (list.size() > kMaxOneOf)
        refuse(path, fmt::format("\"oneOf\" has more than {} alternatives", kMaxOneOf));
      for (std::size_t i = 0; i < list.size(); ++i)
        for (std::size_t j = 0; j < i; ++j)
          if (!are_disjoint(root_, list[i], list[j], place(i)))
            refuse(path, fmt::format("\"oneOf\": alternatives {} and {} could both match; give "
                                     "them different types or a required property with "
                                     "different \"const\" values, or use \"anyOf\"",
                                     j, i));
    }
    Schema rest = flat;
    rest.erase(keyword);
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i] == Schema(false)) continue;
      // In place where that cannot go round in a circle: what begins alike is then one state.
      if (rest.empty() && !is_only(list[i], "$ref"))
        value(nfa, from, to, list[i], place(i));
      else if (rest.empty())
        nfa.call(from, to, rule_of(list[i], place(i)));
      else
        nfa.call(from, to, rule_of(merged(root_, rest, list[i], place(i)), place(i)));
    }
  }

  void literals(Nfa& nfa, State from, State to, const Schema& flat, const std::string& path) {
    for (const auto& [keyword, unused] : flat.items())
      if (keyword != "enum" && keyword != "const" && keyword != "type")
        refuse(path, fmt::format("\"{}\" beside \"enum\" or \"const\" is not supported", keyword));
    if (flat.contains("enum") && flat.contains("const"))
      refuse(path, "\"enum\" beside \"const\" is not supported");
    const Schema values = flat.contains("enum") ? flat["enum"] : Schema::array({flat["const"]});
    const auto types = types_of(flat);
    const auto is_wanted = [&](const Schema& one) {
      const std::string type = type_of(one);
      const auto has = [&](std::string_view name) {
        return std::find(types.begin(), types.end(), name) != types.end();
      };
      return has(type) || (type == "integer" && has("number"));
    };
    for (const Schema& one : values)
      if (is_wanted(one)) literal(nfa, from, to, one);
  }

  void literal(Nfa& nfa, State from, State to, const Schema& one) {
    if (!one.is_structured() || one.empty()) return nfa.text(from, to, one.dump());
    const State open = nfa.add(), close = nfa.add();
    nfa.text(from, open, one.is_object() ? "{" : "[");
    State at = nfa.add();
    book_.gap(nfa, open, at);
    for (auto item = one.begin(); item != one.end(); ++item) {
      if (item != one.begin()) {
        const State comma = nfa.add(), next = nfa.add();
        nfa.text(at, comma, ",");
        book_.gap(nfa, comma, next);
        at = next;
      }
      if (one.is_object()) {
        const State key = nfa.add(), after = nfa.add();
        nfa.text(at, key, Schema(item.key()).dump());
        book_.colon(nfa, key, after);
        at = after;
      }
      const State after = nfa.add();
      literal(nfa, at, after, *item);
      at = after;
    }
    book_.gap(nfa, at, close);
    nfa.text(close, to, one.is_object() ? "}" : "]");
  }

  void typed(Nfa& nfa, State from, State to, const Schema& schema, const std::string& type,
             const std::string& path) {
    if (type == "null") return nfa.text(from, to, "null");
    if (type == "object") return object(nfa, from, to, schema, path);
    if (type == "array") return array(nfa, from, to, schema, path);
    if (type == "string") return string(nfa, from, to, schema, path);
    if (type == "boolean") {
      nfa.text(from, to, "true");
      return nfa.text(from, to, "false");
    }
    number(nfa, from, to, schema, type, path);
  }

  void number(Nfa& nfa, State from, State to, const Schema& schema, const std::string& type,
              const std::string& path) {
    NumberRange range{.kind = type == "integer" ? NumberKind::integer : NumberKind::number};
    std::optional<Dfa> narrowed;
    const auto narrow = [&](const char* keyword, bool is_min, bool exclusive) {
      if (!schema.contains(keyword)) return;
      const auto decimal = parse_decimal(schema[keyword].dump());
      if (!decimal) refuse(path, fmt::format("the value of \"{}\" has too many digits", keyword));
      range.min = range.max = std::nullopt;
      (is_min ? range.min : range.max) = Bound{.value = *decimal, .exclusive = exclusive};
      const Dfa one = needed(compile_numbers(range), path);
      narrowed = narrowed ? needed(combine(*narrowed, one, Product::both), path) : one;
    };
    narrow("minimum", true, false);
    narrow("exclusiveMinimum", true, true);
    narrow("maximum", false, false);
    narrow("exclusiveMaximum", false, true);
    const auto rule = book_.named(fmt::format(
        "{} {} {} {} {}", type, text_of(schema, "minimum"), text_of(schema, "exclusiveMinimum"),
        text_of(schema, "maximum"), text_of(schema, "exclusiveMaximum")));
    if (rule.fresh)
      book_.set(rule.id, narrowed ? std::move(*narrowed) : needed(compile_numbers(range), path));
    nfa.call(from, to, rule.id);
  }

  static std::string text_of(const Schema& schema, const char* keyword) {
    return schema.contains(keyword) ? schema[keyword].dump() : "-";
  }

  void string(Nfa& nfa, State from, State to, const Schema& schema, const std::string& path) {
    std::vector<std::string> patterns;
    if (schema.contains("pattern")) {
      if (schema["pattern"].is_string())
        patterns = {schema["pattern"].get<std::string>()};
      else
        patterns = schema["pattern"].get<std::vector<std::string>>();
    }
    if (schema.contains("format")) {
      const auto& format = schema["format"].get_ref<const std::string&>();
      const char* const pattern = pattern_of_format(format);
      if (pattern == nullptr)
        refuse(path, fmt::format("the format \"{}\" is not supported", format));
      patterns.emplace_back(pattern);
    }
    const bool is_bounded = schema.contains("minLength") || schema.contains("maxLength");
    if (patterns.empty() && !is_bounded) return nfa.call(from, to, book_.any_string());

    std::optional<Dfa> content;
    const auto narrow = [&](Dfa by) {
      content = content ? needed(combine(*content, by, Product::both), path) : std::move(by);
    };
    for (const std::string& pattern : patterns) {
      auto dfa = compile_pattern(pattern);
      if (!dfa) refuse(path, fmt::format("\"pattern\": {}", dfa.error().message));
      narrow(std::move(*dfa));
    }
    if (is_bounded) {
      Repetitions length{.min = schema.value("minLength", std::int64_t{0})};
      if (schema.contains("maxLength")) length.max = schema["maxLength"].get<std::int64_t>();
      if (length.max && *length.max < length.min)
        refuse(path, "\"maxLength\" is less than \"minLength\"");
      narrow(needed(any_content(length), path));
    }
    quoted(nfa, from, to, *content);
  }

  static void quoted(Nfa& nfa, State from, State to, const Dfa& content) {
    const State open = nfa.add(), close = nfa.add();
    nfa.text(from, open, "\"");
    nfa.embed(open, close, content);
    nfa.text(close, to, "\"");
  }

  void array(Nfa& nfa, State from, State to, const Schema& schema, const std::string& path) {
    const Schema prefix = schema.value("prefixItems", Schema::array());
    const Schema items = schema.value("items", Schema(true));
    const auto num_prefix = static_cast<std::int64_t>(prefix.size());
    const auto min = schema.value("minItems", std::int64_t{0});
    std::optional<std::int64_t> max;
    if (schema.contains("maxItems")) max = schema["maxItems"].get<std::int64_t>();
    if (items == Schema(false)) max = std::min(max.value_or(num_prefix), num_prefix);
    if (max && *max < min) refuse(path, "no array has so few and so many items");
    const std::int64_t unrolled = max ? *max : std::max({min, num_prefix, std::int64_t{1}});
    const auto item = [&](State a, State b, std::int64_t i) {
      if (i < num_prefix)
        nfa.call(a, b, rule_of(prefix[i], fmt::format("{}/prefixItems/{}", path, i)));
      else
        nfa.call(a, b, items_rule(schema, items, path));
    };
    State count = nfa.add();
    const State close = nfa.add();
    nfa.text(from, count, "[");
    if (min == 0) nfa.text(count, to, "]");
    nfa.text(close, to, "]");
    const auto comma = [&](State a, State b) {
      const State after = nfa.add();
      nfa.text(a, after, ",");
      book_.gap(nfa, after, b);
    };
    for (std::int64_t i = 0; i < unrolled && !nfa.overflowed(); ++i) {
      const State ready = nfa.add(), next = nfa.add();
      if (i == 0)
        book_.gap(nfa, count, ready);
      else
        comma(count, ready);
      item(ready, next, i);
      if (i + 1 >= min) book_.gap(nfa, next, close);
      count = next;
    }
    if (max) return;
    const State ready = nfa.add();
    comma(count, ready);
    item(ready, count, num_prefix);
  }

  RuleId items_rule(const Schema& schema, const Schema& items, const std::string& path) {
    return schema.contains("items") ? rule_of(items, path + "/items") : book_.any_value();
  }

  void object(Nfa& nfa, State from, State to, const Schema& schema, const std::string& path) {
    Schema properties = schema.value("properties", Schema::object());
    const Schema required = schema.value("required", Schema::array());
    const bool is_open = schema.contains("additionalProperties") || !schema.contains("properties");
    const Schema additional = schema.value("additionalProperties", Schema(true));
    if (properties.empty() && required.empty() && is_open && additional == Schema(true))
      return nfa.call(from, to, book_.any_object());
    for (const Schema& name : required)
      if (!properties.contains(name.get_ref<const std::string&>()))
        properties[name.get_ref<const std::string&>()] = additional;

    State none = nfa.add(), some = nfa.add();  // no member so far; some
    nfa.text(from, none, "{");
    const auto entry = [&] {
      const State comma = nfa.add(), ready = nfa.add();
      book_.gap(nfa, none, ready);
      nfa.text(some, comma, ",");
      book_.gap(nfa, comma, ready);
      return ready;
    };
    for (const auto& [name, property] : properties.items()) {
      const State key = nfa.add(), value_at = nfa.add(), next_none = nfa.add(), next = nfa.add();
      nfa.text(entry(), key, Schema(name).dump());
      book_.colon(nfa, key, value_at);
      nfa.call(value_at, next, rule_of(property, path + "/properties/" + name));
      if (std::find(required.begin(), required.end(), Schema(name)) == required.end()) {
        nfa.empty(none, next_none);
        nfa.empty(some, next);
      }
      none = next_none;
      some = next;
    }
    if (is_open && additional != Schema(false)) {
      const State key = nfa.add(), value_at = nfa.add();
      nfa.call(entry(), key, other_key(properties, path));
      book_.colon(nfa, key, value_at);
      nfa.call(value_at, some, rule_of(additional, path + "/additionalProperties"));
    }
    const State close = nfa.add();
    nfa.text(none, to, "}");
    book_.gap(nfa, some, close);
    nfa.text(close, to, "}");
  }

  /// Keys that are none of the named properties, in canonical spelling so that none slips by.
  RuleId other_key(const Schema& properties, const std::string& path) {
    std::string names = "key but";
    for (const auto& [name, unused] : properties.items()) names += ' ' + Schema(name).dump();
    const auto rule = book_.named(names);
    if (!rule.fresh) return rule.id;
    const Dfa named = dfa_for(path, [&](Nfa& nfa, State a, State b) {
      for (const auto& [name, unused] : properties.items()) {
        const std::string text = Schema(name).dump();
        nfa.text(a, b, std::string_view(text).substr(1, text.size() - 2));
      }
    });
    const Dfa others =
        needed(combine(needed(any_content({}), path), named, Product::first_without_second), path);
    book_.set(rule.id,
              dfa_for(path, [&](Nfa& nfa, State a, State b) { quoted(nfa, a, b, others); }));
    return rule.id;
  }

  const Schema& root_;
  RuleBook book_;
  std::deque<Open> open_;
  std::size_t nested_bytes_ = 0;
};

Error wrong(std::string why) { return {.message = std::move(why), .kind = ErrorKind::wrong_use}; }

}  // namespace

Expected<Grammar> compile_schema(std::string_view schema) {
  if (schema.size() > kMaxSchemaBytes)
    return wrong(fmt::format("the schema has more than {} KiB", kMaxSchemaBytes >> 10));
  int depth = 0;
  bool too_deep = false;
  const auto watch = [&](int now, Schema::parse_event_t, Schema&) {
    depth = std::max(depth, now);
    too_deep = depth > kMaxDepth;
    return !too_deep;
  };
  const Schema root = Schema::parse(schema, watch, false);
  if (too_deep) return wrong(fmt::format("the schema is nested more than {} deep", kMaxDepth));
  if (root.is_discarded()) return wrong("the schema is not valid JSON");
  try {
    return Grammar::link(Compiler(root).compile());
  } catch (const Refusal& refusal) {
    return wrong(refusal.why);
  }
}

Expected<Grammar> compile_json_object() {
  RuleBook book;
  book.any_object();
  return Grammar::link(book.rules());
}

}  // namespace gauntlet::engine::grammar
