#include "server/openai/log_probs_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

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

/// Without its closing brace.
std::string open_chat_log_prob(const std::string& bytes, float log_probability) {
  std::string list;
  for (const char c : bytes) add_element(list, std::to_string(static_cast<unsigned char>(c)));
  return fmt::format(R"({{"token":{},"logprob":{},"bytes":[{}])", dump(Json(bytes)),
                     dump(Json(log_probability)), list);
}

}  // namespace

void LogProbsText::add_to_completion(const ShownLogProb& shown) {
  add_element(tokens_, dump(Json(shown.bytes)));
  add_element(values_, dump(Json(shown.log_probability)));
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
  add_element(tops_, "{" + top + "}");
}

void LogProbsText::add_to_chat(const ShownLogProb& shown) {
  std::string top;
  for (const auto& [bytes, value] : shown.top)
    add_element(top, open_chat_log_prob(bytes, value) + "}");
  add_element(tokens_, fmt::format(R"({},"top_logprobs":[{}]}})",
                                   open_chat_log_prob(shown.bytes, shown.log_probability), top));
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

std::string LogProbsText::json() const {
  if (form_ == LogProbsForm::chat) return R"({"content":[)" + tokens_ + R"(],"refusal":null})";
  return fmt::format(
      R"({{"tokens":[{}],"token_logprobs":[{}],"top_logprobs":[{}],"text_offset":[{}]}})", tokens_,
      values_, tops_, offsets_);
}

}  // namespace gauntlet::server::inline openai
