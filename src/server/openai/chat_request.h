// POST /v1/chat/completions and POST /tokenize as typed requests.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "model/harmony.h"
#include "server/openai/completion_request.h"
#include "server/structured/constraint.h"

namespace gauntlet::server::inline openai {

struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;  // as the model wrote them, so not always JSON
};

struct ChatMessage {
  model::Role role = model::Role::user;
  std::string content;
  std::string name;                  // of a user; empty: none
  std::string reasoning;             // of an assistant, from its analysis
  std::vector<ToolCall> tool_calls;  // of an assistant
  std::string tool_call_id;          // of a tool: which call it answers
};

struct ChatRequest {
  std::vector<ChatMessage> messages;
  std::vector<model::ToolFunction> tools;        // none with tool_choice none
  std::optional<model::ReasoningEffort> effort;  // none was asked for: medium
  std::optional<OutputConstraint> constraint;
  GenerationParams params;
};
ApiResult<ChatRequest> parse_chat(const Json& body, const RequestScope& scope);

struct TokenizeRequest {
  std::optional<std::string> text;
  ChatRequest chat;                // where there is no text
  bool add_special_tokens = true;  // BOS where the model has one; of a text
  bool return_token_strs = false;
};
ApiResult<TokenizeRequest> parse_tokenize(const Json& body, const RequestScope& scope);

/// The messages of a conversation; `fields` is the body.
std::vector<ChatMessage> read_messages(Fields& fields);

struct ToolFields {
  std::vector<model::ToolFunction> tools;
  std::optional<OutputConstraint> constraint;  // where a call is required
};
/// How a function is described: chats put it within {"type", "function"}, responses beside the
/// type.
enum class ToolShape { nested, flat };
/// tools, tool_choice and parallel_tool_calls.
ToolFields read_tools(Fields& fields, ToolShape shape = ToolShape::nested);

/// One of OpenAI's words. This family of models was trained on three of them; the others are the
/// nearest of those.
std::optional<model::ReasoningEffort> read_effort(Fields& fields, const std::string& name);

/// Whether it can name a function or a person: 1 to 64 letters, digits, dashes and underscores, so
/// that it cannot spell anything else within a header.
bool is_plain_name(std::string_view name);
inline constexpr const char* kPlainName =
    "must have 1 to 64 letters, digits, dashes and underscores";

}  // namespace gauntlet::server::inline openai
