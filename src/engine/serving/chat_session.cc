#include "engine/serving/chat_session.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/random.h"

namespace gauntlet::engine::inline serving {

using model::Message;
using model::Role;

ChatSession::ChatSession(Executor& executor, const model::Harmony& harmony, ChatSettings settings,
                         Speculation speculation)
    : harmony_(harmony),
      settings_(std::move(settings)),
      generator_(executor, &harmony_.tokenizer(), std::move(speculation)) {
  reset();
}

void ChatSession::reset() {
  messages_ = {{.header = {.role = Role::system},
                .content = model::SystemContent{.effort = settings_.effort}}};
  if (!settings_.instructions.empty()) {
    messages_.push_back(
        {.header = {.role = Role::developer},
         .content = model::DeveloperContent{.instructions = settings_.instructions}});
  }
}

Expected<ChatAnswer> ChatSession::say(const std::string& text, const ChatEvents& events) {
  std::vector<Message> messages = messages_;
  messages.push_back({.header = {.role = Role::user}, .content = text});
  auto prompt = harmony_.render(messages);
  if (!prompt) return prompt.error();
  const std::int64_t left = settings_.max_context - std::ssize(*prompt);
  if (left < 1) {
    return Error{fmt::format("the conversation would take {} tokens and has room for {}: begin "
                             "anew, or with a larger context",
                             prompt->size(), settings_.max_context),
                 ErrorKind::wrong_use};
  }
  GenerationRequest request{.prompt = std::move(*prompt),
                            .max_tokens = std::min(settings_.max_tokens, left),
                            .sampling = settings_.sampling};
  request.sampling.seed = Random(settings_.sampling.seed).bits(num_answers_);

  model::HarmonyParser parser(harmony_);
  const auto show = [&](const std::string& piece) {
    if (events.on_text && !piece.empty()) {
      events.on_text(parser.messages().back().header.channel, piece);
    }
  };
  auto made = generator_.run(request, {.on_prompt = events.on_prompt,
                                       .on_token =
                                           [&](std::int32_t token, std::string_view) {
                                             if (token >= 0) show(parser.push(token));
                                           },
                                       .cancel = events.cancel});
  if (!made) return made.error();
  show(parser.finish());

  ++num_answers_;
  messages_ = std::move(messages);
  for (const model::ParsedMessage& message : parser.messages()) {
    if (message.header.role == Role::assistant) messages_.push_back(message.to_message());
  }
  return ChatAnswer{.messages = parser.messages(), .generation = std::move(*made)};
}

}  // namespace gauntlet::engine::inline serving
