// Tools as harmony shows them to the model: TypeScript-like functions in namespaces, made of JSON
// schemas. What is written where is the model's training format, so it is matched to the letter.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "core/text/text.h"
#include "model/files/json_scanner.h"
#include "model/harmony/harmony.h"

namespace gauntlet::model::inline harmony {
namespace {

using OrderedJson = nlohmann::ordered_json;  // properties keep the order they were written in

// A schema comes from outside: both bounds keep a hostile one from costing more than its text.
constexpr std::size_t kMaxSchemaBytes = 64 << 10;
constexpr int kMaxToolDepth = 32;

const OrderedJson* find(const OrderedJson& schema, const char* key) {
  const auto at = schema.is_object() ? schema.find(key) : schema.end();
  return at == schema.end() ? nullptr : &*at;
}

/// A member that is a string; null otherwise.
const std::string* find_text(const OrderedJson& schema, const char* key) {
  const OrderedJson* value = find(schema, key);
  return value && value->is_string() ? value->get_ptr<const std::string*>() : nullptr;
}

/// A member that is a list; null otherwise.
const OrderedJson* find_list(const OrderedJson& schema, const char* key) {
  const OrderedJson* value = find(schema, key);
  return value && value->is_array() ? value : nullptr;
}

bool has_choices(const OrderedJson& schema) {
  const OrderedJson* choices = find_list(schema, "enum");
  return choices && !choices->empty();
}

/// A number with its shortest digits, written plainly from 1e-5 up to 1e16.
std::string number_text(double value) {
  char digits[40];
  const auto end =
      std::to_chars(digits, digits + sizeof digits, value, std::chars_format::scientific);
  const std::string_view text(digits, static_cast<std::size_t>(end.ptr - digits));
  const std::size_t e = text.find('e');
  const int exponent = std::stoi(std::string(text.substr(e + 1)));
  if (exponent < -5 || exponent >= 16) return fmt::format("{}e{}", text.substr(0, e), exponent);
  const auto plain = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed);
  std::string out(digits, plain.ptr);
  if (out.find('.') == std::string::npos) out += ".0";
  return out;
}

std::string json_text(const OrderedJson& value) {
  if (value.is_number_float()) return number_text(value.get<double>());
  if (!value.is_structured())
    return value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  std::vector<std::string> parts;
  for (const auto& [key, item] : value.items()) {
    parts.push_back(value.is_object() ? OrderedJson(key).dump() + ":" + json_text(item)
                                      : json_text(item));
  }
  return fmt::format("{}{}{}", value.is_object() ? "{" : "[", fmt::join(parts, ","),
                     value.is_object() ? "}" : "]");
}

/// A string that is one of several choices stands without quotes; in a type that is itself a list
/// of alternatives, harmony writes it as JSON instead.
enum class ChosenString { bare, as_json };

/// "default: ..." when the schema has one.
std::string default_text(const OrderedJson& schema, ChosenString chosen = ChosenString::bare) {
  const OrderedJson* value = find(schema, "default");
  if (!value) return "";
  const std::string* text = find_text(schema, "default");
  if (!text) return "default: " + json_text(*value);
  if (!has_choices(schema)) return "default: \"" + *text + "\"";
  return "default: " + (chosen == ChosenString::bare ? *text : json_text(*value));
}

class TypeWriter {
 public:
  std::string type(const OrderedJson& schema, const std::string& indent, int depth = 0) {
    if (depth == kMaxToolDepth) {
      too_deep_ = true;
      return "any";
    }
    if (const OrderedJson* variants = find_list(schema, "oneOf"))
      return one_of(*variants, indent, depth);
    if (const OrderedJson* types = find_list(schema, "type")) {
      std::vector<std::string> names;
      for (const OrderedJson& one : *types) {
        if (one.is_string()) names.push_back(one == "integer" ? "number" : one.get<std::string>());
      }
      if (!names.empty()) return fmt::format("{}", fmt::join(names, " | "));
    }
    const std::string* name = find_text(schema, "type");
    if (!name) return "any";
    if (*name == "object") return object(schema, indent, depth);
    if (*name == "string") return choices(schema);
    if (*name == "number" || *name == "integer") return "number";
    if (*name == "boolean") return "boolean";
    if (*name == "array") {
      const OrderedJson* items = find(schema, "items");
      return items ? type(*items, indent, depth + 1) + "[]" : "Array<any>";
    }
    return "any";
  }
  bool too_deep() const { return too_deep_; }

 private:
  static std::string choices(const OrderedJson& schema) {
    std::vector<std::string> quoted;
    if (const OrderedJson* list = find_list(schema, "enum")) {
      for (const OrderedJson& one : *list) {
        if (one.is_string()) quoted.push_back("\"" + one.get<std::string>() + "\"");
      }
    }
    return quoted.empty() ? "string" : fmt::format("{}", fmt::join(quoted, " | "));
  }

  std::string nullable_type(const OrderedJson& schema, const std::string& indent, int depth) {
    std::string text = type(schema, indent, depth + 1);
    const OrderedJson* nullable = find(schema, "nullable");
    if (nullable && *nullable == true && text.find("null") == std::string::npos) text += " | null";
    return text;
  }

  static std::string trailing(const std::vector<std::string>& comments) {
    return comments.empty() ? "" : fmt::format(" // {}", fmt::join(comments, " "));
  }

  std::string one_of(const OrderedJson& variants, const std::string& indent, int depth) {
    std::string out;
    for (const OrderedJson& variant : variants) {
      out += "\n" + indent + " | " + nullable_type(variant, indent + "   ", depth);
      std::vector<std::string> comments;
      if (const auto* description = find_text(variant, "description")) {
        comments.push_back(*description);
      }
      if (find(variant, "default")) {
        comments.push_back(default_text(variant, ChosenString::as_json));
      }
      out += trailing(comments);
    }
    return out;
  }

  std::string object(const OrderedJson& schema, const std::string& indent, int depth) {
    std::string out;
    if (const auto* description = find_text(schema, "description")) {
      out += indent + "// " + *description + "\n";
    }
    out += "{\n";
    const OrderedJson* properties = find(schema, "properties");
    if (properties && properties->is_object()) {
      const OrderedJson* required = find_list(schema, "required");
      for (const auto& [key, value] : properties->items()) {
        const bool needed =
            required && std::find(required->begin(), required->end(), key) != required->end();
        out += property(needed ? key : key + "?", value, indent, depth);
      }
    }
    return out + indent + "}";
  }

  std::string property(const std::string& name, const OrderedJson& schema,
                       const std::string& indent, int depth) {
    std::string out;
    const auto comment = [&](const std::string& text) { out += indent + "// " + text + "\n"; };
    const OrderedJson* one = find(schema, "oneOf");
    const std::string* description = find_text(schema, "description");
    if (const auto* title = find_text(schema, "title")) {
      comment(*title);
      out += indent + "//\n";
    }
    if (!one && description) comment(*description);
    if (const OrderedJson* examples = find_list(schema, "examples");
        examples && !examples->empty()) {
      comment("Examples:");
      for (const OrderedJson& example : *examples) {
        if (example.is_string()) comment("- \"" + example.get<std::string>() + "\"");
      }
    }
    if (one && one->is_array()) return out + alternatives(name, schema, *one, indent, depth);
    out += indent + name + ": " + nullable_type(schema, indent + "    ", depth) + ",";
    if (!one && find(schema, "default")) out += " // " + default_text(schema);
    return out + "\n";
  }

  /// A property with oneOf: each variant on a line of its own, and no description said twice.
  std::string alternatives(const std::string& name, const OrderedJson& schema,
                           const OrderedJson& variants, const std::string& indent, int depth) {
    std::string out;
    const std::string* description = find_text(schema, "description");
    const std::string* first =
        variants.empty() ? nullptr : find_text(variants.front(), "description");
    const bool above = description && !(first && *first == *description);
    if (above) out += indent + "// " + *description + "\n";
    if (find(schema, "default")) out += indent + "// " + default_text(schema) + "\n";
    out += indent + name + ":\n";
    for (std::size_t i = 0; i < variants.size(); ++i) {
      const OrderedJson& variant = variants[i];
      out += indent + " | " + nullable_type(variant, indent + "   ", depth);
      std::vector<std::string> comments;
      const std::string* own = find_text(variant, "description");
      const bool told = (i == 0 && above) || (own && description && *own == *description);
      if (own && !told) comments.push_back(*own);
      if (find(variant, "default")) comments.push_back(default_text(variant));
      out += trailing(comments) + "\n";
    }
    return out + indent + ",\n";
  }

  bool too_deep_ = false;
};

/// A line end may be \r\n, and one at the end begins no line.
std::vector<std::string> description_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    if (end < text.size() && lines.back().ends_with('\r')) lines.back().pop_back();
    at = end + 1;
  }
  return lines;
}

Expected<std::string> render_namespace(const ToolNamespace& tool) {
  std::vector<std::string> lines = {"## " + tool.name + "\n"};
  const std::string prefix = tool.functions.empty() ? "" : "// ";
  for (const std::string& line : description_lines(tool.description))
    lines.push_back(prefix + line);
  if (!tool.functions.empty()) {
    lines.push_back("namespace " + tool.name + " {\n");
    for (const ToolFunction& function : tool.functions) {
      for (const auto& line : description_lines(function.description))
        lines.push_back("// " + line);
      std::string parameters;
      if (!function.parameters.empty()) {
        const auto type = schema_to_typescript(function.parameters);
        if (!type) {
          return Error{
              fmt::format("the parameters of tool '{}' {}", function.name, type.error().message),
              ErrorKind::wrong_use};
        }
        parameters = "_: " + *type;
      }
      lines.push_back(fmt::format("type {} = ({}) => any;\n", function.name, parameters));
    }
    lines.push_back("} // namespace " + tool.name);
  }
  return fmt::format("{}", fmt::join(lines, "\n"));
}

}  // namespace

Expected<std::string> schema_to_typescript(std::string_view schema) {
  const auto wrong = [](std::string sentence) {
    return Error{std::move(sentence), ErrorKind::wrong_use};
  };
  if (schema.size() > kMaxSchemaBytes) {
    return wrong("exceed " + format_bytes(static_cast<double>(kMaxSchemaBytes)));
  }
  // Reading a tree recurses, so its depth is bounded before it is made.
  JsonScanner scanner(schema);
  std::string_view whole;
  if (!scanner.skip(whole) || !scanner.end()) return wrong("are wrong: " + scanner.error());
  const OrderedJson parsed = OrderedJson::parse(schema, nullptr, false);
  if (parsed.is_discarded()) return wrong("are no JSON");
  TypeWriter writer;
  std::string type = writer.type(parsed, "");
  if (writer.too_deep()) return wrong(fmt::format("are nested deeper than {}", kMaxToolDepth));
  return type;
}

Expected<std::string> render_tools(std::span<const ToolNamespace> tools) {
  std::vector<const ToolNamespace*> sorted;
  for (const ToolNamespace& tool : tools) sorted.push_back(&tool);
  std::sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return a->name < b->name; });
  std::string out = "# Tools";
  for (const ToolNamespace* tool : sorted) {
    const auto section = render_namespace(*tool);
    if (!section) return section.error();
    out += "\n\n" + *section;
  }
  return out;
}

}  // namespace gauntlet::model::inline harmony
