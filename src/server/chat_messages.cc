// The messages and tools of a conversation, out of a request's body.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "server/chat_request.h"

namespace gauntlet::server {
namespace {

using model::Role;

constexpr std::size_t kMaxMessages = 4096;
constexpr std::size_t kMaxParts = 1024;
constexpr std::size_t kMaxTools = 128;
constexpr const char* kPlainName = "must have 1 to 64 letters, digits, dashes and underscores";

/// A string, or a list of parts that are texts.
std::optional<std::string> read_content(Fields& fields) {
  const Json* value = fields.find("content");
  if (!value) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  const Json* parts = fields.list("content", kMaxParts);
  std::string content;
  for (std::size_t i = 0; parts && i < parts->size(); ++i) {
    Fields part = fields.within((*parts)[i], fmt::format("content[{}]", i));
    const auto type = part.text("type");
    if (type != "text") part.refuse("type", "must be text: this model reads nothing else");
    const auto text = part.text("text");
    if (!text) part.refuse("text", "is missing");
    part.refuse_unknown();
    content += text.value_or("");
  }
  return content;
}

ToolCall read_tool_call(Fields fields) {
  ToolCall call;
  call.id = fields.text("id").value_or("");
  if (call.id.empty()) fields.refuse("id", "is missing");
  fields.choice("type", {"function"});
  const Json* function = fields.object("function");
  fields.refuse_unknown();
  if (!function) {
    fields.refuse("function", "is missing");
    return call;
  }
  Fields inner = fields.within(*function, "function");
  call.name = inner.text("name").value_or("");
  if (!is_plain_name(call.name)) inner.refuse("name", kPlainName);
  call.arguments = inner.text("arguments").value_or("");
  inner.refuse_unknown();
  return call;
}

void read_assistant(Fields& fields, ChatMessage& message) {
  message.reasoning = fields.text("reasoning_content").value_or("");
  const auto refusal = fields.text("refusal");
  if (refusal && message.content.empty()) message.content = *refusal;
  if (const Json* calls = fields.list("tool_calls", kMaxTools)) {
    for (std::size_t i = 0; i < calls->size(); ++i) {
      message.tool_calls.push_back(
          read_tool_call(fields.within((*calls)[i], fmt::format("tool_calls[{}]", i))));
    }
  }
}

ChatMessage read_message(Fields fields) {
  ChatMessage message;
  const auto word = fields.choice("role", {"system", "developer", "user", "assistant", "tool"});
  if (!word) fields.refuse("role", "is missing");
  message.role = model::role_named(word.value_or("user")).value_or(Role::user);
  const auto content = read_content(fields);
  message.content = content.value_or("");
  if (const auto name = fields.text("name")) {
    message.name = *name;
    if (!is_plain_name(*name)) fields.refuse("name", kPlainName);
  }
  if (message.role == Role::assistant) read_assistant(fields, message);
  if (message.role == Role::tool) {
    message.tool_call_id = fields.text("tool_call_id").value_or("");
    if (message.tool_call_id.empty()) fields.refuse("tool_call_id", "is missing");
  }
  if (!content && message.tool_calls.empty() && message.content.empty() &&
      message.reasoning.empty()) {
    fields.refuse("content", "is missing");
  }
  fields.refuse_unknown();
  return message;
}

model::ToolFunction read_tool(Fields fields) {
  model::ToolFunction tool;
  if (fields.text("type") != "function") {
    fields.refuse("type", "must be function: no other tools are supported");
  }
  const Json* function = fields.object("function");
  fields.refuse_unknown();
  if (!function) {
    fields.refuse("function", "is missing");
    return tool;
  }
  Fields inner = fields.within(*function, "function");
  tool.name = inner.text("name").value_or("");
  if (!is_plain_name(tool.name)) inner.refuse("name", kPlainName);
  tool.description = inner.text("description").value_or("");
  if (const Json* parameters = inner.object("parameters")) tool.parameters = parameters->dump();
  inner.boolean("strict");
  inner.refuse_unknown();
  return tool;
}

/// The one function that {"type": "function", "function": {"name": ...}} asks for.
std::string read_named_choice(Fields fields) {
  fields.choice("type", {"function"});
  const Json* function = fields.object("function");
  fields.refuse_unknown();
  if (!function) {
    fields.refuse("function", "is missing");
    return "";
  }
  Fields inner = fields.within(*function, "function");
  const std::string name = inner.text("name").value_or("");
  inner.refuse_unknown();
  return name;
}

void read_tool_choice(Fields& fields, ToolFields& read) {
  const Json* choice = fields.find("tool_choice");
  if (!choice) return;
  if (read.tools.empty()) return fields.refuse("tool_choice", "needs tools to choose from");
  std::vector<model::ToolFunction> wanted;
  if (choice->is_object()) {
    const std::string name = read_named_choice(fields.within(*choice, "tool_choice"));
    std::ranges::copy_if(read.tools, std::back_inserter(wanted),
                         [&](const auto& tool) { return tool.name == name; });
    if (wanted.empty()) {
      return fields.refuse("tool_choice", "names a function that is not among the tools");
    }
  } else {
    const auto word = fields.choice("tool_choice", {"none", "auto", "required"});
    if (word == "none") read.tools.clear();
    if (word != "required") return;
    wanted = read.tools;
  }
  read.constraint = OutputConstraint{.form = OutputForm::tool_call, .functions = std::move(wanted)};
}

}  // namespace

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
}

std::vector<ChatMessage> read_messages(Fields& fields) {
  std::vector<ChatMessage> messages;
  const Json* list = fields.list("messages", kMaxMessages);
  if (!list || list->empty()) {
    fields.refuse("messages", "must hold at least one message");
    return messages;
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    messages.push_back(read_message(fields.within((*list)[i], fmt::format("messages[{}]", i))));
  }
  return messages;
}

ToolFields read_tools(Fields& fields) {
  ToolFields read;
  if (const Json* list = fields.list("tools", kMaxTools)) {
    for (std::size_t i = 0; i < list->size(); ++i) {
      model::ToolFunction tool = read_tool(fields.within((*list)[i], fmt::format("tools[{}]", i)));
      const bool twice = std::ranges::any_of(
          read.tools, [&](const auto& other) { return other.name == tool.name; });
      if (twice) fields.refuse("tools", fmt::format("names the function {} twice", tool.name));
      read.tools.push_back(std::move(tool));
    }
  }
  read_tool_choice(fields, read);
  fields.boolean("parallel_tool_calls");
  return read;
}

}  // namespace gauntlet::server
