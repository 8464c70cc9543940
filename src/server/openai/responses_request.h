// POST /v1/responses as a typed request: a chat whose messages come as items.
#pragma once
#include <string>
#include <vector>

#include "server/openai/chat_request.h"

namespace gauntlet::server::inline openai {

enum class KeepResponse { no, yes };

struct ResponsesRequest {
  ChatRequest chat;                         // its messages are the input's, without instructions
  std::optional<std::string> instructions;  // not kept for the responses that follow
  std::string previous_id;                  // empty: the conversation begins here
  KeepResponse keep = KeepResponse::yes;
  std::string echo;  // JSON: what the answer repeats of the request
};

/// What an item that is only named stands for: an output of a response that was kept, as JSON.
using FindItem = std::function<std::optional<std::string>(const std::string& id)>;

ApiResult<ResponsesRequest> parse_responses(const Json& body, const RequestScope& scope,
                                            const FindItem& find_item);

/// Items as messages. What an assistant reasoned, said and called in a row is one message.
std::vector<ChatMessage> read_items(Fields& fields, const std::string& name, const Json& items,
                                    const FindItem& find_item);

}  // namespace gauntlet::server::inline openai
