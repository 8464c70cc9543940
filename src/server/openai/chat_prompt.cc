#include "server/openai/chat_prompt.h"

#include <fmt/format.h>

#include <map>

namespace gauntlet::server::inline openai {
namespace {

using model::Message;
using model::Role;

bool is_instruction(const ChatMessage& message) {
  return message.role == Role::system || message.role == Role::developer;
}

/// Instructions that open the conversation, and the tools.
model::DeveloperContent opening(const ChatRequest& request, std::size_t num_leading) {
  model::DeveloperContent content;
  for (std::size_t i = 0; i < num_leading; ++i) {
    const std::string& text = request.messages[i].content;
    content.instructions = content.instructions ? *content.instructions + "\n\n" + text : text;
  }
  if (!request.tools.empty()) content.tools.push_back({.functions = request.tools});
  return content;
}

void add_assistant(const ChatMessage& message, std::vector<Message>& out) {
  const auto add = [&](const char* channel, const std::string& text) {
    if (!text.empty()) {
      out.push_back({.header = {.role = Role::assistant, .channel = channel}, .content = text});
    }
  };
  add("analysis", message.reasoning);
  add(message.tool_calls.empty() ? "final" : "commentary", message.content);
  for (const ToolCall& call : message.tool_calls) {
    out.push_back({.header = {.role = Role::assistant,
                              .recipient = "functions." + call.name,
                              .channel = "commentary",
                              .content_type = "<|constrain|>json"},
                   .content = call.arguments});
  }
}

}  // namespace

ApiResult<std::vector<Message>> harmony_messages(const ChatRequest& request) {
  const auto effort = request.effort.value_or(model::ReasoningEffort::medium);
  std::vector<Message> out = {
      {.header = {.role = Role::system}, .content = model::SystemContent{.effort = effort}}};
  std::size_t num_leading = 0;
  while (num_leading < request.messages.size() && is_instruction(request.messages[num_leading])) {
    ++num_leading;
  }
  if (num_leading > 0 || !request.tools.empty()) {
    out.push_back({.header = {.role = Role::developer}, .content = opening(request, num_leading)});
  }
  std::map<std::string, std::string> calls;  // function by call id
  for (std::size_t i = num_leading; i < request.messages.size(); ++i) {
    const ChatMessage& message = request.messages[i];
    if (is_instruction(message)) {
      out.push_back({.header = {.role = Role::developer},
                     .content = model::DeveloperContent{.instructions = message.content}});
    } else if (message.role == Role::assistant) {
      for (const ToolCall& call : message.tool_calls) calls[call.id] = call.name;
      add_assistant(message, out);
    } else if (message.role == Role::tool) {
      const auto call = calls.find(message.tool_call_id);
      if (call == calls.end()) {
        const std::string path = fmt::format("messages[{}].tool_call_id", i);
        return ApiError{.message = path + " names no call of an assistant's message before it",
                        .param = path};
      }
      out.push_back({.header = {.role = Role::tool,
                                .name = "functions." + call->second,
                                .recipient = "assistant",
                                .channel = "commentary"},
                     .content = message.content});
    } else {
      out.push_back(
          {.header = {.role = Role::user, .name = message.name}, .content = message.content});
    }
  }
  return out;
}

ApiResult<std::vector<std::int32_t>> render_chat(const ChatRequest& request,
                                                 const model::Harmony& harmony) {
  const auto messages = harmony_messages(request);
  if (!messages) return messages.error();
  auto ids = harmony.render(*messages);
  if (!ids) return ApiError{.message = ids.error().message, .param = "messages"};
  return std::move(*ids);
}

}  // namespace gauntlet::server::inline openai
