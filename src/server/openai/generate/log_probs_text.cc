#include "server/openai/generate/log_probs_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "server/openai/fields.h"

namespace gauntlet::server::inline openai {
namespace {

std::int64_t num_characters(std::string_view bytes) {
  return std::ranges::count_if(bytes, [](char c) { return (c & 0xC0) != 0x80; });
}

void add_element(std::string& list, std::string_view element) {
  if (!list.empty()) list += ',';
  list += element;
}

void add_element(TextBlocks& list, std::string_view element) {
  if (!list.empty()) list.append(",");
  list.append(element);
}

std::string value_of(std::optional<float> log_probability) {
  return log_probability ? dump(Json(*log_probability)) : "null";
}

/// Without its closing brace.
std::string open_chat_log_prob(const std::string& bytes, std::optional<float> log_probability) {
  std::string list;
  for (const char c : bytes) add_element(list, std::to_string(static_cast<unsigned char>(c)));
  return fmt::format(R"({{"token":{},"logprob":{},"bytes":[{}])", dump(Json(bytes)),
                     value_of(log_probability), list);
}

}  // namespace

void LogProbsText::add_to_completion(const ShownLogProb& shown) {
  add_element(tokens_, dump(Json(shown.bytes)));
  add_element(values_, value_of(shown.log_probability));
  add_element(offsets_, std::to_string(offset_));
  offset_ += num_characters(shown.bytes);
  std::vector<std::string> keys;
  std::string top;
  for (const auto& [bytes, value] : shown.top) {
    // As it will be read: two parts of characters may look alike, and the likelier wins.
    std::string key = dump(Json(bytes));
    if (std::ranges::find(keys, key) != keys.end()) continue;
    add_element(top, key + ":" + dump(Json(value)));
    keys.push_back(std::move(key));
  }
  add_element(tops_, shown.log_probability ? "{" + top + "}" : "null");
}

void LogProbsText::add_to_chat(const ShownLogProb& shown) {
  std::string top;
  for (const auto& [bytes, value] : shown.top)
    add_element(top, open_chat_log_prob(bytes, value) + "}");
  add_element(tokens_, fmt::format(R"({},"top_logprobs":[{}]}})",
                                   open_chat_log_prob(shown.bytes, shown.log_probability), top));
}

void PromptLogProbsText::add(const std::vector<ShownPromptToken>& tokens) {
  const auto entry = [](std::int32_t token, const std::string& bytes, float value,
                        const std::string& rank) {
    return fmt::format(R"("{}":{{"logprob":{},"rank":{},"decoded_token":{}}})", token,
                       dump(Json(value)), rank, dump(Json(bytes)));
  };
  for (const ShownPromptToken& one : tokens) {
    const ShownLogProb& shown = one.shown;
    std::string all;
    for (std::size_t i = 0; i < shown.top.size(); ++i) {
      add_element(all, entry(one.top_tokens[i], shown.top[i].first, shown.top[i].second,
                             std::to_string(i + 1)));
    }
    const auto& top = one.top_tokens;
    if (shown.log_probability && std::ranges::find(top, one.token) == top.end()) {
      add_element(all, entry(one.token, shown.bytes, *shown.log_probability, "null"));
    }
    add_element(list_, shown.log_probability ? "{" + all + "}" : "null");
  }
}

TextBlocks PromptLogProbsText::take_json() {
  TextBlocks json;
  json.append("[");
  json.append(std::exchange(list_, {}));
  json.append("]");
  return json;
}

void LogProbsText::add(const std::vector<ShownLogProb>& log_probs) {
  for (const ShownLogProb& shown : log_probs) {
    if (form_ == LogProbsForm::chat) {
      add_to_chat(shown);
    } else {
      add_to_completion(shown);
    }
  }
}

TextBlocks LogProbsText::take_json() {
  TextBlocks json;
  if (form_ == LogProbsForm::chat) {
    json.append(R"({"content":[)");
    json.append(std::exchange(tokens_, {}));
    json.append(R"(],"refusal":null})");
    return json;
  }
  json.append(R"({"tokens":[)");
  json.append(std::exchange(tokens_, {}));
  json.append(R"(],"token_logprobs":[)");
  json.append(std::exchange(values_, {}));
  json.append(R"(],"top_logprobs":[)");
  json.append(std::exchange(tops_, {}));
  json.append(R"(],"text_offset":[)");
  json.append(std::exchange(offsets_, {}));
  json.append("]}");
  return json;
}

}  // namespace gauntlet::server::inline openai
