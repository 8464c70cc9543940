// The tools of a request, and which of them may or must be called.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "server/openai/chat_request.h"

namespace gauntlet::server::inline openai {
namespace {

constexpr std::size_t kMaxTools = 128;

struct Tool {
  model::ToolFunction shown;
  Strictness strictness = Strictness::lenient;
};
using Tools = std::vector<Tool>;

Tool read_function(Fields& fields) {
  Tool read;
  model::ToolFunction& tool = read.shown;
  tool.name = fields.text("name").value_or("");
  if (!is_plain_name(tool.name)) fields.refuse("name", kPlainName);
  tool.description = fields.text("description").value_or("");
  if (const Json* parameters = fields.object("parameters")) tool.parameters = parameters->dump();
  if (fields.boolean("strict").value_or(false)) read.strictness = Strictness::strict;
  return read;
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

Tool read_tool(Fields fields, ToolShape shape) {
  if (fields.text("type") != "function") {
    fields.refuse("type", "must be function: no other tools are supported");
    return {};
  }
  return read_inner(fields, shape, [](Fields& inner) { return read_function(inner); });
}

/// A tool of OpenAI's own, which it runs itself. Clients offer some beside their functions, for the
/// model to use or not; here it is not shown them. Who offers nothing else is told.
bool is_hosted(const Json& tool) {
  static const std::vector<std::string> kHosted = {"apply_patch",
                                                   "code_interpreter",
                                                   "computer_use_preview",
                                                   "custom",
                                                   "file_search",
                                                   "image_generation",
                                                   "local_shell",
                                                   "mcp",
                                                   "namespace",
                                                   "shell",
                                                   "tool_search",
                                                   "web_search",
                                                   "web_search_preview"};
  if (!tool.is_object() || !tool.contains("type") || !tool["type"].is_string()) return false;
  return std::ranges::find(kHosted, tool["type"].get_ref<const std::string&>()) != kHosted.end();
}

std::string read_name(Fields fields, ToolShape shape) {
  fields.choice("type", {"function"});
  return read_inner(fields, shape, [](Fields& inner) { return inner.text("name").value_or(""); });
}

Tools named(const Tools& tools, const std::vector<std::string>& names) {
  Tools found;
  std::ranges::copy_if(tools, std::back_inserter(found), [&](const Tool& tool) {
    return std::ranges::find(names, tool.shown.name) != names.end();
  });
  return found;
}

OutputConstraint hold(OutputForm form, const Tools& tools) {
  OutputConstraint constraint{.form = form, .param = "tools"};
  for (const auto& [shown, strictness] : tools) {
    constraint.functions.push_back(
        {.name = shown.name, .parameters = shown.parameters, .strictness = strictness});
  }
  return constraint;
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

/// Which call is required; of the tools, those that the model is shown are left.
OutputConstraint read_tool_choice(Fields& fields, ToolShape shape, Tools& tools) {
  const Json* choice = fields.find("tool_choice");
  if (!choice) return hold(OutputForm::free, tools);
  const bool is_word = !choice->is_object();
  if (tools.empty()) {
    // Which is what there is without tools, and what clients say of none.
    const bool is_none = *choice == "auto" || *choice == "none";
    if (!is_word || shape != ToolShape::flat || !is_none) {
      fields.refuse("tool_choice", "needs tools to choose from");
    }
    return hold(OutputForm::free, tools);
  }
  if (is_word) {
    const auto word = fields.choice("tool_choice", {"none", "auto", "required"});
    if (word == "none") tools.clear();
    return hold(word == "required" ? OutputForm::tool_call : OutputForm::free, tools);
  }
  const bool is_list = choice->value("type", Json()) == "allowed_tools";
  Fields inner = fields.within(*choice, "tool_choice");
  const Allowed allowed = is_list ? read_allowed(inner, shape)
                                  : Allowed{.names = {read_name(inner, shape)}, .mode = "required"};
  const Tools wanted = named(tools, allowed.names);
  if (wanted.size() != allowed.names.size()) {
    fields.refuse("tool_choice", "names a function that is not among the tools");
    return hold(OutputForm::free, tools);
  }
  if (is_list) tools = wanted;  // the model is not shown what it may not call
  return hold(allowed.mode == "required" ? OutputForm::tool_call : OutputForm::free, wanted);
}

}  // namespace

ToolFields read_tools(Fields& fields, ToolShape shape) {
  Tools tools;
  if (const Json* list = fields.list("tools", kMaxTools)) {
    const bool is_more = shape == ToolShape::flat && !std::ranges::all_of(*list, is_hosted);
    for (std::size_t i = 0; i < list->size(); ++i) {
      if (is_more && is_hosted((*list)[i])) continue;
      Tool tool = read_tool(fields.within((*list)[i], fmt::format("tools[{}]", i)), shape);
      const std::string& name = tool.shown.name;
      const bool twice =
          std::ranges::any_of(tools, [&](const Tool& other) { return other.shown.name == name; });
      if (twice) fields.refuse("tools", fmt::format("names the function {} twice", name));
      tools.push_back(std::move(tool));
    }
  }
  ToolFields read{.calls = read_tool_choice(fields, shape, tools)};
  for (Tool& tool : tools) read.tools.push_back(std::move(tool.shown));
  fields.boolean("parallel_tool_calls");
  return read;
}

std::optional<OutputConstraint> constraint_of(std::optional<OutputConstraint> answer,
                                              const OutputConstraint& calls) {
  if (calls.form == OutputForm::tool_call) return calls;
  if (answer) {
    answer->functions = calls.functions;
    return answer;
  }
  if (calls.functions.empty()) return std::nullopt;
  return calls;
}

}  // namespace gauntlet::server::inline openai
