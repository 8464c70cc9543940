// A response's items, which a client sends back as it got them, as messages of a conversation.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "server/openai/responses_request.h"

namespace gauntlet::server::inline openai {
namespace {

using model::Role;

constexpr std::size_t kMaxItemParts = 1024;

/// The texts of a list of parts, each of one of these types.
std::string read_parts(Fields& fields, const std::string& name,
                       const std::vector<std::string>& types) {
  const Json* parts = fields.list(name, kMaxItemParts);
  std::string text;
  for (std::size_t i = 0; parts && i < parts->size(); ++i) {
    Fields part = fields.within((*parts)[i], fmt::format("{}[{}]", name, i));
    const auto type = part.choice("type", types);
    if (!type) part.refuse("type", "is missing");
    const char* holder = type == "refusal" ? "refusal" : "text";
    const auto said = part.text(holder);
    if (!said) part.refuse(holder, "is missing");
    part.list("annotations", kMaxItemParts);
    part.find("logprobs");
    part.refuse_unknown();
    text += said.value_or("");
  }
  return text;
}

/// A string, or parts.
std::string read_text(Fields& fields, const std::string& name,
                      const std::vector<std::string>& types) {
  const Json* value = fields.find(name);
  if (!value) {
    fields.refuse(name, "is missing");
    return "";
  }
  return value->is_string() ? value->get<std::string>() : read_parts(fields, name, types);
}

ChatMessage read_message_item(Fields& fields) {
  ChatMessage message;
  const auto word = fields.choice("role", {"system", "developer", "user", "assistant"});
  if (!word) fields.refuse("role", "is missing");
  message.role = model::role_named(word.value_or("user")).value_or(Role::user);
  message.content = read_text(fields, "content", {"input_text", "output_text", "text", "refusal"});
  fields.text("phase");
  return message;
}

ChatMessage read_call_item(Fields& fields) {
  ToolCall call;
  call.id = fields.text("call_id").value_or("");
  if (call.id.empty()) fields.refuse("call_id", "is missing");
  call.name = fields.text("name").value_or("");
  if (!is_plain_name(call.name)) fields.refuse("name", kPlainName);
  call.arguments = fields.text("arguments").value_or("");
  return {.role = Role::assistant, .tool_calls = {std::move(call)}};
}

ChatMessage read_call_output_item(Fields& fields) {
  ChatMessage message{.role = Role::tool};
  message.tool_call_id = fields.text("call_id").value_or("");
  if (message.tool_call_id.empty()) fields.refuse("call_id", "is missing");
  message.content = read_text(fields, "output", {"input_text", "output_text", "text"});
  return message;
}

/// What was reasoned is in `content`; a summary stands in for it where a client kept only that.
ChatMessage read_reasoning_item(Fields& fields) {
  ChatMessage message{.role = Role::assistant};
  const std::string summary = read_parts(fields, "summary", {"summary_text"});
  message.reasoning = read_parts(fields, "content", {"reasoning_text", "text"});
  if (message.reasoning.empty()) message.reasoning = summary;
  fields.text("encrypted_content");  // another server's, which only that one can read
  return message;
}

/// Whether it goes on with the assistant's message before it: reasoning, then text, then calls.
bool continues(const ChatMessage& last, const ChatMessage& next) {
  if (last.role != Role::assistant || next.role != Role::assistant) return false;
  if (!last.tool_calls.empty()) return !next.tool_calls.empty();
  if (!last.content.empty()) return !next.tool_calls.empty();
  return next.reasoning.empty();
}

void append_item(ChatMessage next, std::vector<ChatMessage>& messages) {
  if (messages.empty() || !continues(messages.back(), next)) {
    messages.push_back(std::move(next));
    return;
  }
  ChatMessage& last = messages.back();
  last.content += next.content;
  for (ToolCall& call : next.tool_calls) last.tool_calls.push_back(std::move(call));
}

ChatMessage read_item(Fields fields) {
  const std::string type = fields.text("type").value_or("message");
  fields.text("id");
  fields.choice("status", {"in_progress", "completed", "incomplete"});
  ChatMessage message;
  if (type == "message") {
    message = read_message_item(fields);
  } else if (type == "function_call") {
    message = read_call_item(fields);
  } else if (type == "function_call_output") {
    message = read_call_output_item(fields);
  } else if (type == "reasoning") {
    message = read_reasoning_item(fields);
  } else {
    fields.refuse("type",
                  "must be message, function_call, function_call_output, reasoning or "
                  "item_reference: other items are of tools that this server does not have");
  }
  fields.refuse_unknown();
  return message;
}

/// The item that {"type": "item_reference", "id": ...} names; null where there is none.
Json named_item(Fields fields, const FindItem& find_item) {
  fields.text("type");
  const std::string id = fields.text("id").value_or("");
  fields.refuse_unknown();
  const auto text = find_item(id);
  if (text) return Json::parse(*text);
  fields.refuse("id", "names no item of a response that this server keeps: send the item itself");
  return nullptr;
}

bool is_reference(const Json& item) {
  return item.is_object() && item.contains("type") && item["type"] == "item_reference";
}

}  // namespace

std::vector<ChatMessage> read_items(Fields& fields, const std::string& name, const Json& items,
                                    const FindItem& find_item) {
  std::vector<ChatMessage> messages;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string path = fmt::format("{}[{}]", name, i);
    if (!is_reference(items[i])) {
      append_item(read_item(fields.within(items[i], path)), messages);
      continue;
    }
    const Json found = named_item(fields.within(items[i], path), find_item);
    if (found.is_object()) append_item(read_item(fields.within(found, path)), messages);
  }
  return messages;
}

}  // namespace gauntlet::server::inline openai
