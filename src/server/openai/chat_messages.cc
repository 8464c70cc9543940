// The messages of a conversation, out of a request's body.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "server/openai/chat_request.h"

namespace gauntlet::server::inline openai {
namespace {

using model::Role;

constexpr std::size_t kMaxMessages = 4096;
constexpr std::size_t kMaxParts = 1024;
constexpr std::size_t kMaxCalls = 128;

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
  fields.integer("index", {0, kMaxCalls});  // left over from a stream
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
  // Two names for one thing: a replayed answer may have either, or both.
  const auto reasoning = fields.text("reasoning");
  message.reasoning = fields.text("reasoning_content").value_or(reasoning.value_or(""));
  fields.list("annotations", kMaxParts);  // of what was said, not to be said again
  const auto refusal = fields.text("refusal");
  if (refusal && message.content.empty()) message.content = *refusal;
  if (const Json* calls = fields.list("tool_calls", kMaxCalls)) {
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

}  // namespace gauntlet::server::inline openai
