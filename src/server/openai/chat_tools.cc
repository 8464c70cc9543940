// The tools of a request, and which of them may or must be called.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "server/openai/chat_request.h"

namespace gauntlet::server::inline openai {
namespace {

constexpr std::size_t kMaxTools = 128;
using Functions = std::vector<model::ToolFunction>;

model::ToolFunction read_function(Fields& fields) {
  model::ToolFunction tool;
  tool.name = fields.text("name").value_or("");
  if (!is_plain_name(tool.name)) fields.refuse("name", kPlainName);
  tool.description = fields.text("description").value_or("");
  if (const Json* parameters = fields.object("parameters")) tool.parameters = parameters->dump();
  fields.boolean("strict");
  return tool;
}

/// What {"type": "function", "function": {...}} holds; in a flat one, the object itself.
template <class Read>
auto read_inner(Fields& fields, ToolShape shape, Read read) {
  if (shape == ToolShape::flat) {
    auto value = read(fields);
    fields.refuse_unknown();
    return value;
  }
  const Json* function = fields.object("function");
  fields.refuse_unknown();
  if (!function) {
    fields.refuse("function", "is missing");
    return decltype(read(fields)){};
  }
  Fields inner = fields.within(*function, "function");
  auto value = read(inner);
  inner.refuse_unknown();
  return value;
}

model::ToolFunction read_tool(Fields fields, ToolShape shape) {
  if (fields.text("type") != "function") {
    fields.refuse("type", "must be function: no other tools are supported");
    return {};
  }
  return read_inner(fields, shape, [](Fields& inner) { return read_function(inner); });
}

std::string read_name(Fields fields, ToolShape shape) {
  fields.choice("type", {"function"});
  return read_inner(fields, shape, [](Fields& inner) { return inner.text("name").value_or(""); });
}

Functions named(const Functions& tools, const std::vector<std::string>& names) {
  Functions found;
  std::ranges::copy_if(tools, std::back_inserter(found), [&](const auto& tool) {
    return std::ranges::find(names, tool.name) != names.end();
  });
  return found;
}

struct Allowed {
  std::vector<std::string> names;
  std::string mode;  // "auto" or "required"
};

Allowed read_allowed(Fields fields, ToolShape shape) {
  Allowed allowed;
  fields.text("type");
  const auto read = [&](Fields& inner) {
    allowed.mode = inner.choice("mode", {"auto", "required"}).value_or("auto");
    const Json* list = inner.list("tools", kMaxTools);
    if (!list || list->empty()) inner.refuse("tools", "must name at least one function");
    for (std::size_t i = 0; list && i < list->size(); ++i) {
      allowed.names.push_back(
          read_name(inner.within((*list)[i], fmt::format("tools[{}]", i)), shape));
    }
    inner.refuse_unknown();
  };
  if (shape == ToolShape::flat) {
    read(fields);
    return allowed;
  }
  const Json* wrapped = fields.object("allowed_tools");
  fields.refuse_unknown();
  if (!wrapped) {
    fields.refuse("allowed_tools", "is missing");
    return allowed;
  }
  Fields inner = fields.within(*wrapped, "allowed_tools");
  read(inner);
  return allowed;
}

void read_tool_choice(Fields& fields, ToolShape shape, ToolFields& read) {
  const Json* choice = fields.find("tool_choice");
  if (!choice) return;
  const bool is_word = !choice->is_object();
  if (read.tools.empty()) {
    // Which is what there is without tools, and what clients say of none.
    if (is_word && shape == ToolShape::flat && (*choice == "auto" || *choice == "none")) return;
    return fields.refuse("tool_choice", "needs tools to choose from");
  }
  const auto require = [&](Functions functions) {
    read.constraint =
        OutputConstraint{.form = OutputForm::tool_call, .functions = std::move(functions)};
  };
  if (is_word) {
    const auto word = fields.choice("tool_choice", {"none", "auto", "required"});
    if (word == "none") read.tools.clear();
    if (word == "required") require(read.tools);
    return;
  }
  const bool is_list = choice->value("type", Json()) == "allowed_tools";
  Fields inner = fields.within(*choice, "tool_choice");
  const Allowed allowed = is_list ? read_allowed(inner, shape)
                                  : Allowed{.names = {read_name(inner, shape)}, .mode = "required"};
  Functions wanted = named(read.tools, allowed.names);
  if (wanted.size() != allowed.names.size()) {
    return fields.refuse("tool_choice", "names a function that is not among the tools");
  }
  if (is_list) read.tools = wanted;  // the model is not shown what it may not call
  if (allowed.mode == "required") require(std::move(wanted));
}

}  // namespace

ToolFields read_tools(Fields& fields, ToolShape shape) {
  ToolFields read;
  if (const Json* list = fields.list("tools", kMaxTools)) {
    for (std::size_t i = 0; i < list->size(); ++i) {
      model::ToolFunction tool =
          read_tool(fields.within((*list)[i], fmt::format("tools[{}]", i)), shape);
      const bool twice = std::ranges::any_of(
          read.tools, [&](const auto& other) { return other.name == tool.name; });
      if (twice) fields.refuse("tools", fmt::format("names the function {} twice", tool.name));
      read.tools.push_back(std::move(tool));
    }
  }
  read_tool_choice(fields, shape, read);
  fields.boolean("parallel_tool_calls");
  return read;
}

}  // namespace gauntlet::server::inline openai
