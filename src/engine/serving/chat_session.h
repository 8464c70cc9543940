// A conversation with a model that speaks harmony: what was said before goes into each prompt, and
// answers come back by channel.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/serving/generator.h"
#include "model/harmony/harmony_parser.h"

namespace gauntlet::engine::inline serving {

struct ChatSettings {
  std::string instructions;  // the developer's; empty: none
  model::ReasoningEffort effort = model::ReasoningEffort::medium;
  SamplingParams sampling;       // each answer draws with a seed of its own made of this one
  std::int64_t max_tokens = 0;   // of one answer
  std::int64_t max_context = 0;  // positions of the whole conversation
};

struct ChatEvents {
  std::function<void(std::int64_t done, std::int64_t total)> on_prompt;
  /// Channel is "analysis", "commentary", "final", or empty where the model named none.
  std::function<void(const std::string& channel, std::string_view text)> on_text;
  const std::atomic<bool>* cancel = nullptr;
};

struct ChatAnswer {
  std::vector<model::ParsedMessage> messages;
  Generation generation;
};

class ChatSession {
 public:
  /// The executor and harmony's tokenizer outlive the session.
  ChatSession(Executor& executor, const model::Harmony& harmony, ChatSettings settings,
              Speculation speculation = {});

  /// An answer that was cut short is kept as far as it came. After an error the conversation is as
  /// it was before.
  Expected<ChatAnswer> say(const std::string& text, const ChatEvents& events);
  /// Begins anew.
  void reset();

 private:
  model::Harmony harmony_;
  ChatSettings settings_;
  Generator generator_;
  std::vector<model::Message> messages_;
  std::uint64_t num_answers_ = 0;
};

}  // namespace gauntlet::engine::inline serving
