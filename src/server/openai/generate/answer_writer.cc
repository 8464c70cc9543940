#include "server/openai/generate/answer_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "server/openai/json_text.h"

namespace gauntlet::server::inline openai {
namespace {

Json usage_json(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}},
          {"completion_tokens_details",
           {{"reasoning_tokens", usage.reasoning_tokens},
            {"accepted_prediction_tokens", usage.accepted_guesses},
            {"rejected_prediction_tokens", usage.rejected_guesses}}}};
}

Json chat_log_prob(const std::string& bytes, std::optional<float> log_probability) {
  Json list = Json::array();
  for (const char c : bytes) list.push_back(static_cast<unsigned char>(c));
  return {{"token", bytes},
          {"logprob", log_probability ? Json(*log_probability) : Json()},
          {"bytes", std::move(list)}};
}

/// `offset` is where the first token's text begins, and moves past the last's.
std::string log_probs_of(const AnswerHead& head, const std::vector<ShownLogProb>& log_probs,
                         std::int64_t& offset) {
  if (head.log_probs == LogProbs::omitted) return "null";
  LogProbsText text(head.kind == AnswerKind::chat ? LogProbsForm::chat : LogProbsForm::completion,
                    offset);
  text.add(log_probs);
  offset = text.offset();
  TextBlocks json = text.take_json();
  return json.take(json.size());
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

/// Most of them are a piece of text and nothing else.
void append_chat_delta(const Delta& delta, std::string& out) {
  const bool is_text = delta.tool_calls.empty() && delta.reasoning.empty() != delta.content.empty();
  if (!is_text) {
    out += dump(delta_json(delta));
    return;
  }
  out += delta.content.empty() ? R"({"reasoning_content":)" : R"({"content":)";
  append_json_text(delta.content.empty() ? delta.reasoning : delta.content, out);
  out += '}';
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

std::string id_list(const std::vector<std::int32_t>& ids) {
  return fmt::format("[{}]", fmt::join(ids, ","));
}

/// What was sampled for a choice, where ids are shown.
std::string sampled_ids(const AnswerHead& head, const std::vector<std::int32_t>& ids) {
  return head.token_ids == TokenIds::omitted ? "" : R"(,"token_ids":)" + id_list(ids);
}

/// The prompt of a choice, likewise. A chat's choices share theirs.
std::string prompt_ids(const AnswerHead& head, int choice) {
  if (head.token_ids == TokenIds::omitted) return "";
  const auto prompt = static_cast<std::size_t>(choice / head.choices_per_prompt);
  return R"(,"prompt_token_ids":)" + id_list(head.prompts.at(prompt));
}

/// Which there is only one of.
std::string tier_of(const AnswerHead& head) {
  return head.service_tier == ServiceTier::said ? R"("service_tier":"default",)" : "";
}

Json or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

class StreamWriter final : public AnswerWriter {
 public:
  StreamWriter(AnswerHead head, int num_choices);
  /// Nothing for a delta that says nothing. A chat's choice begins with its role.
  void delta(int choice, const Delta& delta, std::string& out) override;
  std::string finish(int choice, const std::string& finish_word) override;
  /// Usage where asked for, and the end of the stream.
  std::string done(const Usage& usage) override;
  std::string failed(const ApiError& error) override { return "data: " + to_json(error) + "\n\n"; }

 private:
  std::string event(std::string_view choices, std::string_view usage) const;
  /// An event of one choice, as far as what that says.
  void open_event(int choice, std::string& out) const;
  std::string closing(std::string_view log_probs, std::string_view ids,
                      std::string_view after_choice) const;

  const AnswerHead head_;
  const std::string opening_;         // of each event
  const std::string_view usage_;      // of each event but the last
  const std::string choice_opening_;  // as far as the choice's number
  const std::string_view said_;
  const std::string plain_closing_;  // where an event only says something
  std::vector<bool> begun_;
  std::vector<std::int64_t> offsets_;  // characters shown so far, by choice
};

class WholeWriter final : public AnswerWriter {
 public:
  WholeWriter(AnswerHead head, int num_choices);
  void delta(int choice, const Delta& delta, std::string& out) override;
  std::string finish(int choice, const std::string& finish_word) override;
  std::string done(const Usage& usage) override;
  TextBlocks done_in_blocks(const Usage& usage) override;
  std::size_t unwritten_bytes() const override { return text_bytes_; }
  std::string failed(const ApiError& error) override { return to_json(error); }

 private:
  struct Choice {
    Delta all = {};  // with one tool call per index, and without log-probabilities
    LogProbsText log_probs;
    PromptLogProbsText prompt = {};
    std::string finish_word = {};
  };
  const AnswerHead head_;
  std::vector<Choice> choices_;
  std::size_t text_bytes_ = 0;  // of content, reasoning and arguments
};

StreamWriter::StreamWriter(AnswerHead head, int num_choices)
    : head_(std::move(head)),
      opening_(fmt::format(
          R"(data: {{"id":{},"object":"{}","created":{},"model":{},{}"choices":[)", dump(head_.id),
          head_.kind == AnswerKind::chat ? "chat.completion.chunk" : "text_completion",
          head_.created_s, dump(head_.model), tier_of(head_))),
      usage_(head_.stream_usage == StreamUsage::included ? R"(,"usage":null)" : ""),
      choice_opening_(opening_ + R"({"index":)"),
      said_(head_.kind == AnswerKind::completion ? R"(,"text":)" : R"(,"delta":)"),
      plain_closing_(closing("null", "", "")),
      begun_(num_choices),
      offsets_(num_choices) {}

std::string StreamWriter::event(std::string_view choices, std::string_view usage) const {
  return fmt::format("{}{}]{}}}\n\n", opening_, choices, usage);
}

void StreamWriter::open_event(int choice, std::string& out) const {
  out += choice_opening_;
  out += fmt::format_int(choice).str();
  out += said_;
}

std::string StreamWriter::closing(std::string_view log_probs, std::string_view ids,
                                  std::string_view after_choice) const {
  return fmt::format(R"(,"logprobs":{}{},"finish_reason":null}}]{}{}}})", log_probs, ids,
                     after_choice, usage_) +
         "\n\n";
}

/// Once per token: what is the same in each was written before, and text goes straight out.
void StreamWriter::delta(int choice, const Delta& delta, std::string& out) {
  if (delta.empty()) return;
  const bool is_first = !begun_[choice];
  std::string ids = sampled_ids(head_, delta.token_ids);
  if (head_.kind == AnswerKind::chat && is_first) {
    const bool begins = std::ranges::find(begun_, true) == begun_.end();
    open_event(choice, out);
    out += R"({"role":"assistant","content":""})";
    out += closing("null", "", begins ? prompt_ids(head_, choice) : "");
  } else if (is_first) {
    ids += prompt_ids(head_, choice);
  }
  begun_[choice] = true;
  open_event(choice, out);
  if (head_.kind == AnswerKind::completion) {
    append_json_text(delta.content, out);
  } else {
    append_chat_delta(delta, out);
  }
  if (head_.log_probs == LogProbs::omitted && ids.empty()) {
    out += plain_closing_;
  } else {
    out += closing(log_probs_of(head_, delta.log_probs, offsets_[choice]), ids, "");
  }
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
  return event(dump(object), usage_);
}

std::string StreamWriter::done(const Usage& usage) {
  std::string events;
  if (head_.stream_usage == StreamUsage::included) {
    events = event("", fmt::format(R"(,"usage":{})", dump(usage_json(usage))));
  }
  return events + "data: [DONE]\n\n";
}

WholeWriter::WholeWriter(AnswerHead head, int num_choices) : head_(std::move(head)) {
  const Choice empty{.log_probs =
                         LogProbsText(head_.kind == AnswerKind::chat ? LogProbsForm::chat
                                                                     : LogProbsForm::completion)};
  choices_.assign(static_cast<std::size_t>(num_choices), empty);
}

void WholeWriter::delta(int choice, const Delta& delta, std::string&) {
  Delta& all = choices_[choice].all;
  all.content += delta.content;
  all.reasoning += delta.reasoning;
  text_bytes_ += delta.content.size() + delta.reasoning.size();
  choices_[choice].log_probs.add(delta.log_probs);
  choices_[choice].prompt.add(delta.prompt);
  all.token_ids.insert(all.token_ids.end(), delta.token_ids.begin(), delta.token_ids.end());
  for (const ToolCallDelta& call : delta.tool_calls) {
    text_bytes_ += call.arguments.size();
    if (!call.id.empty()) {
      all.tool_calls.push_back(call);
    } else {
      check(!all.tool_calls.empty(), "a call's arguments came before its name");
      all.tool_calls.back().arguments += call.arguments;
    }
  }
}

std::string WholeWriter::finish(int choice, const std::string& finish_word) {
  choices_[choice].finish_word = finish_word;
  return "";
}

std::string WholeWriter::done(const Usage& usage) {
  TextBlocks blocks = done_in_blocks(usage);
  return blocks.take(blocks.size());
}

/// Put together from text: a tree of all of it would take many times its size.
TextBlocks WholeWriter::done_in_blocks(const Usage& usage) {
  TextBlocks out;
  const bool is_chat = head_.kind == AnswerKind::chat;
  const bool is_scored = head_.prompt_log_probs == LogProbs::shown;
  out.append(fmt::format(R"({{"id":{},"object":"{}","created":{},"model":{},{}"choices":[)",
                         dump(head_.id), is_chat ? "chat.completion" : "text_completion",
                         head_.created_s, dump(head_.model), tier_of(head_)));
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    Choice& choice = choices_[i];
    const std::string said = is_chat ? R"("message":)" + dump(message_json(choice.all))
                                     : R"("text":)" + dump(choice.all.content);
    const Delta all = std::exchange(choice.all, {});
    out.append(fmt::format(R"({}{{"index":{},{},"logprobs":)", i == 0 ? "" : ",", i, said));
    if (head_.log_probs == LogProbs::omitted) {
      out.append("null");
    } else {
      out.append(choice.log_probs.take_json());
    }
    out.append(sampled_ids(head_, all.token_ids));
    if (!is_chat) out.append(prompt_ids(head_, static_cast<int>(i)));
    if (is_scored && !is_chat) {
      out.append(R"(,"prompt_logprobs":)");
      out.append(choice.prompt.take_json());
    }
    out.append(fmt::format(R"(,"finish_reason":{}}})", dump(or_null(choice.finish_word))));
  }
  out.append("]");
  if (is_chat) out.append(prompt_ids(head_, 0));
  if (is_scored && is_chat) {  // the choices of a chat share its prompt
    out.append(R"(,"prompt_logprobs":)");
    out.append(choices_.front().prompt.take_json());
  }
  out.append(fmt::format(R"(,"usage":{}}})", dump(usage_json(usage))));
  return out;
}

}  // namespace

std::string finish_word(engine::FinishReason reason, int num_tool_calls) {
  if (reason == engine::FinishReason::length) return "length";
  return num_tool_calls > 0 ? "tool_calls" : "stop";
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
  return content;
}

std::unique_ptr<AnswerWriter> make_answer_writer(AnswerHead head, Delivery delivery,
                                                 int num_choices) {
  if (delivery == Delivery::streamed) {
    return std::make_unique<StreamWriter>(std::move(head), num_choices);
  }
  return std::make_unique<WholeWriter>(std::move(head), num_choices);
}

}  // namespace gauntlet::server::inline openai
