#include "server/answer_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/check.h"

namespace gauntlet::server {
namespace {

Json usage_json(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}}};
}

std::int64_t num_characters(std::string_view bytes) {
  return std::ranges::count_if(bytes, [](char c) { return (c & 0xC0) != 0x80; });
}

Json chat_log_prob(const std::string& bytes, float log_probability) {
  Json list = Json::array();
  for (const char c : bytes) list.push_back(static_cast<unsigned char>(c));
  return {{"token", bytes}, {"logprob", log_probability}, {"bytes", std::move(list)}};
}

Json chat_log_probs(const std::vector<ShownLogProb>& log_probs) {
  Json content = Json::array();
  for (const ShownLogProb& shown : log_probs) {
    Json one = chat_log_prob(shown.bytes, shown.log_probability);
    Json top = Json::array();
    for (const auto& [bytes, value] : shown.top) top.push_back(chat_log_prob(bytes, value));
    one["top_logprobs"] = std::move(top);
    content.push_back(std::move(one));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

/// `offset` is where the first token's text begins, and moves past the last's.
Json completion_log_probs(const std::vector<ShownLogProb>& log_probs, std::int64_t& offset) {
  Json tokens = Json::array();
  Json values = Json::array();
  Json tops = Json::array();
  Json offsets = Json::array();
  for (const ShownLogProb& shown : log_probs) {
    tokens.push_back(shown.bytes);
    values.push_back(shown.log_probability);
    Json top = Json::object();
    for (const auto& [bytes, value] : shown.top) {
      // As the key will be written: two parts of characters may look alike, and the likelier wins.
      const std::string key = Json::parse(dump(Json(bytes))).get<std::string>();
      if (!top.contains(key)) top[key] = value;
    }
    tops.push_back(std::move(top));
    offsets.push_back(offset);
    offset += num_characters(shown.bytes);
  }
  return {{"tokens", std::move(tokens)},
          {"token_logprobs", std::move(values)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(offsets)}};
}

Json log_probs_json(const AnswerHead& head, const std::vector<ShownLogProb>& log_probs,
                    std::int64_t& offset) {
  if (head.log_probs == LogProbs::omitted) return nullptr;
  return head.kind == AnswerKind::chat ? chat_log_probs(log_probs)
                                       : completion_log_probs(log_probs, offset);
}

Json delta_json(const Delta& delta) {
  Json object = Json::object();
  if (!delta.reasoning.empty()) object["reasoning_content"] = delta.reasoning;
  if (!delta.content.empty()) object["content"] = delta.content;
  if (delta.tool_calls.empty()) return object;
  Json calls = Json::array();
  for (const ToolCallDelta& call : delta.tool_calls) {
    Json one = {{"index", call.index}};
    if (!call.id.empty()) {
      one["id"] = call.id;
      one["type"] = "function";
      one["function"] = {{"name", call.name}, {"arguments", call.arguments}};
    } else {
      one["function"] = {{"arguments", call.arguments}};
    }
    calls.push_back(std::move(one));
  }
  object["tool_calls"] = std::move(calls);
  return object;
}

Json message_json(const Delta& all) {
  Json message = {{"role", "assistant"}, {"content", all.content}, {"refusal", nullptr}};
  if (!all.reasoning.empty()) message["reasoning_content"] = all.reasoning;
  if (all.tool_calls.empty()) return message;
  if (all.content.empty()) message["content"] = nullptr;
  Json calls = Json::array();
  for (const ToolCallDelta& call : all.tool_calls) {
    calls.push_back({{"id", call.id},
                     {"type", "function"},
                     {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  message["tool_calls"] = std::move(calls);
  return message;
}

Json or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

}  // namespace

std::string finish_word(engine::FinishReason reason, int num_tool_calls) {
  if (reason == engine::FinishReason::length) return "length";
  return num_tool_calls > 0 ? "tool_calls" : "stop";
}

StreamWriter::StreamWriter(AnswerHead head, int num_choices)
    : head_(std::move(head)),
      opening_(fmt::format(
          R"(data: {{"id":{},"object":"{}","created":{},"model":{},"choices":[)", dump(head_.id),
          head_.kind == AnswerKind::chat ? "chat.completion.chunk" : "text_completion",
          head_.created_s, dump(head_.model))),
      begun_(num_choices),
      offsets_(num_choices) {}

std::string StreamWriter::event(const std::string& choices, const std::string& usage) const {
  return opening_ + choices + "]" + usage + "}\n\n";
}

/// Once per token: what is the same in each was written before, and the rest is one string.
std::string StreamWriter::delta(int choice, const Delta& delta) {
  if (delta.empty()) return "";
  const std::string usage = head_.stream_usage == StreamUsage::included ? R"(,"usage":null)" : "";
  const auto choice_with = [&](const std::string& said, const std::string& log_probs) {
    return fmt::format(R"({{"index":{},{},"logprobs":{},"finish_reason":null}})", choice, said,
                       log_probs);
  };
  std::string events;
  if (head_.kind == AnswerKind::chat && !begun_[choice]) {
    events = event(choice_with(R"("delta":{"role":"assistant","content":""})", "null"), usage);
  }
  begun_[choice] = true;
  const std::string said = head_.kind == AnswerKind::completion
                               ? R"("text":)" + dump(delta.content)
                               : R"("delta":)" + dump(delta_json(delta));
  const std::string log_probs =
      head_.log_probs == LogProbs::omitted
          ? "null"
          : dump(log_probs_json(head_, delta.log_probs, offsets_[choice]));
  return events + event(choice_with(said, log_probs), usage);
}

std::string StreamWriter::finish(int choice, const std::string& finish_word) {
  Json object = {{"index", choice}};
  if (head_.kind == AnswerKind::completion) {
    object["text"] = "";
  } else if (begun_[choice]) {
    object["delta"] = Json::object();
  } else {
    object["delta"] = {{"role", "assistant"}, {"content", ""}};
  }
  object["logprobs"] = nullptr;
  object["finish_reason"] = finish_word;
  return event(dump(object), head_.stream_usage == StreamUsage::included ? R"(,"usage":null)" : "");
}

std::string StreamWriter::done(const Usage& usage) const {
  std::string events;
  if (head_.stream_usage == StreamUsage::included) {
    events = event("", fmt::format(R"(,"usage":{})", dump(usage_json(usage))));
  }
  return events + "data: [DONE]\n\n";
}

WholeWriter::WholeWriter(AnswerHead head, int num_choices)
    : head_(std::move(head)), choices_(num_choices) {}

void WholeWriter::delta(int choice, const Delta& delta) {
  Delta& all = choices_[choice].all;
  all.content += delta.content;
  all.reasoning += delta.reasoning;
  all.log_probs.insert(all.log_probs.end(), delta.log_probs.begin(), delta.log_probs.end());
  for (const ToolCallDelta& call : delta.tool_calls) {
    if (!call.id.empty()) {
      all.tool_calls.push_back(call);
    } else {
      check(!all.tool_calls.empty(), "a call's arguments came before its name");
      all.tool_calls.back().arguments += call.arguments;
    }
  }
}

void WholeWriter::finish(int choice, const std::string& finish_word) {
  choices_[choice].finish_word = finish_word;
}

std::string WholeWriter::done(const Usage& usage) const {
  Json list = Json::array();
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    const Choice& choice = choices_[i];
    std::int64_t offset = 0;
    Json object = {{"index", i}};
    if (head_.kind == AnswerKind::chat) {
      object["message"] = message_json(choice.all);
    } else {
      object["text"] = choice.all.content;
    }
    object["logprobs"] = log_probs_json(head_, choice.all.log_probs, offset);
    object["finish_reason"] = or_null(choice.finish_word);
    list.push_back(std::move(object));
  }
  return dump({{"id", head_.id},
               {"object", head_.kind == AnswerKind::chat ? "chat.completion" : "text_completion"},
               {"created", head_.created_s},
               {"model", head_.model},
               {"choices", std::move(list)},
               {"usage", usage_json(usage)}});
}

}  // namespace gauntlet::server
