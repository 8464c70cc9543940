// A conversation in OpenAI's terms as the prompt that the model was trained on.
#pragma once
#include <cstdint>
#include <vector>

#include "server/openai/chat_request.h"

namespace gauntlet::server::inline openai {

/// System and developer messages are the developer's in harmony, whose system message is ours.
/// A tool's answer must name a call that came before it.
ApiResult<std::vector<model::Message>> harmony_messages(const ChatRequest& request);

ApiResult<std::vector<std::int32_t>> render_chat(const ChatRequest& request,
                                                 const model::Harmony& harmony);

}  // namespace gauntlet::server::inline openai
