#include "engine/grammar/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "engine/grammar/json_rules.h"
#include "engine/grammar/numbers.h"
#include "engine/grammar/regex.h"
#include "engine/grammar/schema_merge.h"
#include "engine/grammar/schema_strings.h"

namespace gauntlet::engine::grammar {
namespace {

using State = Nfa::State;

constexpr std::size_t kMaxSchemaBytes = 128u << 10;
constexpr int kMaxDepth = 64;
constexpr std::size_t kMaxOneOf = 64;
constexpr std::size_t kMaxChoices = 4096;
constexpr std::int64_t kMaxCountedItems = 12'000;  // more take more work than there is

class Compiler {
 public:
  explicit Compiler(Scope& scope) : scope_(scope), book_(scope.work), strings_(scope, book_) {}

  const std::vector<Dfa>& compile() {
    rule_of(scope_.root, "#");
    while (!open_.empty()) {
      const Open next = std::move(open_.front());
      open_.pop_front();
      book_.set(next.rule, dfa_of(scope_.work, [&](Nfa& nfa, State from, State to) {
                  value(nfa, from, to, next.schema, next.path);
                }));
    }
    return book_.rules();
  }

 private:
  struct Open {
    RuleId rule = 0;
    Schema schema;
    std::string path;
  };

  /// The rule of a schema, which is compiled once however often and wherever it stands.
  RuleId rule_of(const Schema& schema, const std::string& path) {
    if (schema.is_boolean() && schema.get<bool>()) return book_.any_value();
    const std::string text = schema.dump();
    scope_.work.spend(20 + text.size() + 2 * weight_of(schema));
    const auto rule = book_.named(text);
    if (rule.fresh) open_.push_back({.rule = rule.id, .schema = schema, .path = path});
    return rule.id;
  }

  void value(Nfa& nfa, State from, State to, const Schema& schema, const std::string& path) {
    check_keywords(scope_, schema, path);
    if (admits_nothing(schema)) return;
    if (schema.is_boolean()) return nfa.call(from, to, book_.any_value());
    if (is_only(schema, "$ref")) {
      const auto& reference = schema["$ref"].get_ref<const std::string&>();
      return nfa.call(from, to, rule_of(resolve(scope_, reference, path), reference));
    }
    const Schema flat = flattened(scope_, schema, path);
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
      scope_.cannot_enforce(path, "oneOf", "\"anyOf\" beside \"oneOf\" is not supported");
    const char* const keyword = flat.contains("anyOf") ? "anyOf" : "oneOf";
    const Schema& list = flat[keyword];
    const auto place = [&](std::size_t i) { return fmt::format("{}/{}/{}", path, keyword, i); };
    if (keyword == std::string_view("oneOf")) {
      if (list.size() > kMaxOneOf)
        refuse(path, fmt::format("\"oneOf\" has more than {} alternatives", kMaxOneOf));
      check_exclusive(list, path);
    }
    Schema rest = flat;
    rest.erase("anyOf");
    rest.erase("oneOf");
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (admits_nothing(list[i])) continue;
      // In place where that cannot go round in a circle: what begins alike is then one state.
      if (rest.empty() && !is_only(list[i], "$ref"))
        value(nfa, from, to, list[i], place(i));
      else if (rest.empty())
        nfa.call(from, to, rule_of(list[i], place(i)));
      else
        nfa.call(from, to, rule_of(merged(scope_, rest, list[i], place(i)), place(i)));
    }
  }

  void check_exclusive(const Schema& list, const std::string& path) {
    for (std::size_t i = 0; i < list.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (!are_disjoint(scope_, list[i], list[j], fmt::format("{}/oneOf/{}", path, i)))
          return scope_.cannot_enforce(
              path, "oneOf",
              fmt::format("\"oneOf\": alternatives {} and {} could both match; give them different "
                          "types or a required property with different \"const\" values, or use "
                          "\"anyOf\"",
                          j, i));
  }

  void literals(Nfa& nfa, State from, State to, const Schema& flat, const std::string& path) {
    for (const auto& [keyword, unused] : flat.items())
      if (keyword != "enum" && keyword != "const" && keyword != "type")
        scope_.cannot_enforce(
            path, keyword,
            fmt::format("\"{}\" beside \"enum\" or \"const\" is not supported", keyword));
    if (flat.contains("enum") && flat.contains("const"))
      scope_.cannot_enforce(path, "const", "\"enum\" beside \"const\" is not supported");
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
    if (type == "string") return nfa.call(from, to, string_rule(schema, path));
    if (type == "boolean") {
      nfa.text(from, to, "true");
      return nfa.text(from, to, "false");
    }
    number(nfa, from, to, schema, type, path);
  }

  RuleId string_rule(const Schema& schema, const std::string& path) {
    const bool is_any = std::none_of(kOfStrings.begin(), kOfStrings.end(),
                                     [&](const char* keyword) { return schema.contains(keyword); });
    return is_any ? book_.any_string() : strings_.strings(schema, path);
  }

  void number(Nfa& nfa, State from, State to, const Schema& schema, const std::string& type,
              const std::string& path) {
    const std::string format = schema.value("format", "");
    const auto rule = book_.named(
        fmt::format("{} {} {} {} {} {} {}", type, text_of(schema, "minimum"),
                    text_of(schema, "exclusiveMinimum"), text_of(schema, "maximum"),
                    text_of(schema, "exclusiveMaximum"), text_of(schema, "multipleOf"), format));
    nfa.call(from, to, rule.id);
    if (!rule.fresh) return;
    const auto kind = type == "integer" ? NumberKind::integer : NumberKind::number;
    std::optional<Dfa> all;
    const auto narrow = [&](const NumberRange& range) {
      Dfa one = compile_numbers(range, scope_.work);
      all = all ? combine(*all, one, Product::both, scope_.work) : std::move(one);
    };
    const auto bound = [&](const char* keyword, bool exclusive) -> std::optional<Bound> {
      if (!schema.contains(keyword)) return std::nullopt;
      const auto decimal = parse_decimal(schema[keyword].dump());
      if (!decimal) refuse(path, fmt::format("the value of \"{}\" has too many digits", keyword));
      return Bound{.value = *decimal, .exclusive = exclusive};
    };
    if (auto least = bound("minimum", false)) narrow({.kind = kind, .min = std::move(least)});
    if (auto least = bound("exclusiveMinimum", true))
      narrow({.kind = kind, .min = std::move(least)});
    if (auto most = bound("maximum", false)) narrow({.kind = kind, .max = std::move(most)});
    if (auto most = bound("exclusiveMaximum", true)) narrow({.kind = kind, .max = std::move(most)});
    if (format == "int32" || format == "int64") {
      const bool is_small = format == "int32";
      const auto limit = [](const char* text) { return Bound{.value = *parse_decimal(text)}; };
      narrow({.kind = NumberKind::integer,
              .min = limit(is_small ? "-2147483648" : "-9223372036854775808"),
              .max = limit(is_small ? "2147483647" : "9223372036854775807")});
    }
    if (const auto step = step_of(schema, path)) {
      narrow({.kind = NumberKind::integer});
      all = combine(*all, compile_multiples(*step, scope_.work), Product::both, scope_.work);
    }
    if (!all) narrow({.kind = kind});
    book_.set(rule.id, std::move(*all));
  }

  std::optional<std::int64_t> step_of(const Schema& schema, const std::string& path) {
    if (!schema.contains("multipleOf")) return std::nullopt;
    const Schema& said = schema["multipleOf"];
    const bool is_whole = type_of(said) == "integer" && said >= 1 && said <= kMaxStep;
    if (is_whole) return said.get<std::int64_t>();
    scope_.cannot_enforce(
        path, "multipleOf",
        fmt::format("\"multipleOf\" other than an integer from 1 to {} is not supported",
                    kMaxStep));
    return std::nullopt;
  }

  static std::string text_of(const Schema& schema, const char* keyword) {
    return schema.contains(keyword) ? schema[keyword].dump() : "-";
  }

  void array(Nfa& nfa, State from, State to, const Schema& schema, const std::string& path) {
    const Schema prefix = schema.value("prefixItems", Schema::array());
    const Schema items = schema.value("items", Schema(true));
    const auto num_prefix = static_cast<std::int64_t>(prefix.size());
    const auto min = schema.value("minItems", std::int64_t{0});
    std::optional<std::int64_t> max;
    if (schema.contains("maxItems")) max = schema["maxItems"].get<std::int64_t>();
    if (admits_nothing(items)) max = std::min(max.value_or(num_prefix), num_prefix);
    if (max && *max < min) refuse(path, "no array has so few and so many items");
    const auto too_many = [](const char* keyword) {
      return fmt::format("this array is too complex: \"{}\" is more than {}", keyword,
                         kMaxCountedItems);
    };
    if (min > kMaxCountedItems) refuse(path, too_many("minItems"));
    if (max && *max > kMaxCountedItems) {
      scope_.cannot_enforce(path, "maxItems", too_many("maxItems"));
      max = std::nullopt;
    }
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
    for (std::int64_t i = 0; i < unrolled; ++i) {
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
    const Schema& required = member(schema, "required");
    const bool is_open = schema.contains("additionalProperties") || !schema.contains("properties");
    const Schema additional = schema.value("additionalProperties", Schema(true));
    const Schema names = schema.value("propertyNames", Schema(true));
    if (properties.empty() && required.empty() && is_open && additional == Schema(true) &&
        names == Schema(true))
      return nfa.call(from, to, book_.any_object());
    std::unordered_set<std::string> is_required;
    for (const Schema& one : required) {
      const auto& name = one.get_ref<const std::string&>();
      scope_.work.spend(4 + properties.size());
      if (is_required.insert(name).second && !properties.contains(name))
        properties[name] = additional;
    }

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
      const bool is_needed = is_required.contains(name);
      if (!strings_.is_name(names, name, path)) {
        if (is_needed) return;  // no object has it
        continue;
      }
      const State key = nfa.add(), value_at = nfa.add(), next_none = nfa.add(), next = nfa.add();
      nfa.text(entry(), key, Schema(name).dump());
      book_.colon(nfa, key, value_at);
      nfa.call(value_at, next, rule_of(property, path + "/properties/" + name));
      if (!is_needed) {
        nfa.empty(none, next_none);
        nfa.empty(some, next);
      }
      none = next_none;
      some = next;
    }
    if (is_open && !admits_nothing(additional)) {
      const State key = nfa.add(), value_at = nfa.add();
      nfa.call(entry(), key, strings_.other_keys(properties, names, path));
      book_.colon(nfa, key, value_at);
      nfa.call(value_at, some, rule_of(additional, path + "/additionalProperties"));
    }
    const State close = nfa.add();
    nfa.text(none, to, "}");
    book_.gap(nfa, some, close);
    nfa.text(close, to, "}");
  }

  static const Schema& member(const Schema& schema, const char* keyword) {
    static const Schema kNone = Schema::array();
    return schema.contains(keyword) ? schema[keyword] : kNone;
  }

  static constexpr std::array kOfStrings = {"pattern", "format", "minLength", "maxLength"};

  Scope& scope_;
  RuleBook book_;
  StringRules strings_;
  std::deque<Open> open_;
};

Error wrong(std::string why) { return {.message = std::move(why), .kind = ErrorKind::wrong_use}; }

Error too_complex(const char* what) {
  return wrong(
      fmt::format("{} is too complex: it needs too many states or too much work to compile", what));
}

/// Keeps the order of members, for which each key is looked for among those before it.
Expected<Schema> parse(std::string_view text, Work& work) {
  std::array<std::size_t, kMaxDepth + 2> num_members{};  // of the objects that are open
  bool too_deep = false;
  const auto watch = [&](int depth, Schema::parse_event_t event, Schema&) {
    too_deep = too_deep || depth > kMaxDepth;
    if (too_deep) return false;
    if (event == Schema::parse_event_t::object_start) num_members[depth] = 0;
    if (event == Schema::parse_event_t::key) work.spend(1 + num_members[depth - 1]++ / 2);
    return true;
  };
  try {
    work.spend(2 * text.size());
    Schema schema = Schema::parse(text, watch, false);
    if (too_deep) return wrong(fmt::format("the schema is nested more than {} deep", kMaxDepth));
    if (schema.is_discarded()) return wrong("the schema is not valid JSON");
    return schema;
  } catch (const OutOfWork&) {
    return too_complex("the schema");
  }
}

}  // namespace

Expected<CompiledSchema> compile_schema(std::string_view schema, Unenforced unenforced) {
  if (schema.size() > kMaxSchemaBytes)
    return wrong(fmt::format("the schema has more than {} KiB", kMaxSchemaBytes >> 10));
  Work work;
  Expected<Schema> root = parse(schema, work);
  if (!root) return root.error();
  Scope scope{.root = *root, .work = work, .unenforced = unenforced};
  try {
    auto grammar = Grammar::link(Compiler(scope).compile(), work);
    if (!grammar) return grammar.error();
    return CompiledSchema{
        .grammar = std::move(*grammar), .unenforced = std::move(scope.notes), .steps = work.used()};
  } catch (const Refusal& refusal) {
    return wrong(refusal.why);
  } catch (const OutOfWork&) {
    return too_complex("the schema");
  }
}

Expected<Grammar> compile_schema(std::string_view schema) {
  auto compiled = compile_schema(schema, Unenforced::refused);
  if (!compiled) return compiled.error();
  return std::move(compiled->grammar);
}

Expected<Grammar> compile_json_object() {
  Work work;
  RuleBook book(work);
  book.any_object();
  return Grammar::link(book.rules(), work);
}

Expected<Grammar> compile_regex(std::string_view pattern) {
  Work work;
  try {
    const auto dfa = compile_whole_text(pattern, work);
    if (!dfa) return dfa.error();
    auto grammar = Grammar::link({*dfa}, work);
    if (!grammar) return wrong("no text matches the regular expression, or it is too large");
    return grammar;
  } catch (const OutOfWork&) {
    return too_complex("the regular expression");
  }
}

Expected<Grammar> compile_choice(const std::vector<std::string>& texts) {
  if (texts.empty() || texts.size() > kMaxChoices)
    return wrong(fmt::format("a choice has 1 to {} texts", kMaxChoices));
  Work work;
  try {
    const Dfa dfa = dfa_of(work, [&](Nfa& nfa, State from, State to) {
      for (const std::string& text : texts) nfa.text(from, to, text);
    });
    return Grammar::link({dfa}, work);
  } catch (const OutOfWork&) {
    return too_complex("the choice");
  }
}

}  // namespace gauntlet::engine::grammar
