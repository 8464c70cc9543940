#include "server/openai/generate/choice_decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "core/random.h"
#include "model/harmony/harmony_parser.h"
#include "model/tokens/utf8.h"
#include "server/openai/chat_request.h"

namespace gauntlet::server::inline openai {
namespace {

using engine::TokenEvent;

constexpr std::string_view kFunctions = "functions.";

/// Of a token that was sampled, or of a prompt.
template <class Token>
ShownLogProb shown(const Token& token, const model::Tokenizer& tokenizer) {
  ShownLogProb log_prob{.bytes = std::string(tokenizer.token_bytes(token.token)),
                        .log_probability = token.log_probability};
  for (const engine::TokenLogProb& top : token.top) {
    log_prob.top.emplace_back(tokenizer.token_bytes(top.token), top.log_probability);
  }
  return log_prob;
}

std::vector<ShownPromptToken> shown_tokens(std::span<const engine::PromptToken> tokens,
                                           const model::Tokenizer& tokenizer) {
  std::vector<ShownPromptToken> all;
  for (const engine::PromptToken& one : tokens) {
    ShownPromptToken& token =
        all.emplace_back(ShownPromptToken{.token = one.token, .shown = shown(one, tokenizer)});
    for (const engine::TokenLogProb& top : one.top) token.top_tokens.push_back(top.token);
  }
  return all;
}

/// Log-probabilities that wait for their tokens' text to be shown: text that may be part of a stop
/// string, or of a character, is held back, and what a stop string cuts off never comes.
class PendingLogProbs {
 public:
  /// `start` is where the token's text begins, in bytes.
  void add(std::size_t start, ShownLogProb log_prob) {
    pending_.emplace_back(start, std::move(log_prob));
  }
  /// Hands out those whose text begins before `end`.
  void release(std::size_t end, std::vector<ShownLogProb>& to) {
    while (!pending_.empty() && pending_.front().first < end) {
      to.push_back(std::move(pending_.front().second));
      pending_.pop_front();
    }
  }

 private:
  std::deque<std::pair<std::size_t, ShownLogProb>> pending_;
};

class TextDecoder final : public ChoiceDecoder {
 public:
  TextDecoder(const model::Tokenizer& tokenizer, DecoderOptions options)
      : tokenizer_(tokenizer),
        options_(std::move(options)),
        text_(tokenizer, options_.stops),
        echo_(options_.echo) {}

  Delta push_prompt(std::span<const engine::PromptToken> tokens) override {
    if (options_.prompt == ShownPrompt::tokens) return {.prompt = shown_tokens(tokens, tokenizer_)};
    Delta delta;
    for (const engine::PromptToken& token : tokens) {
      if (num_prompt_++ < options_.hidden_prompt) continue;
      delta.log_probs.push_back(shown(token, tokenizer_));
      delta.content += prompt_text_.push(delta.log_probs.back().bytes);
    }
    return delta;
  }
  Delta push(const TokenEvent& event) override {
    if (is_silent(event.token)) return {};
    if (options_.log_probs == LogProbs::shown) {
      log_probs_.add(text_.taken_bytes(), shown(event, tokenizer_));
    }
    return showing(text_.push(event.token));
  }
  Delta finish() override {
    Delta delta = showing(text_.finish());
    if (!text_.stopped()) log_probs_.release(std::string::npos, delta.log_probs);
    return delta;
  }
  bool stopped() const override { return text_.stopped(); }
  int num_tool_calls() const override { return 0; }
  std::int64_t num_reasoning_tokens() const override { return 0; }

 private:
  bool is_silent(std::int32_t token) const {
    const auto& stop_ids = options_.stop_ids;
    return (options_.special_tokens == SpecialText::hidden && tokenizer_.is_special(token)) ||
           std::ranges::find(stop_ids, token) != stop_ids.end();
  }

  Delta showing(const std::string& text) {
    shown_bytes_ += text.size();
    Delta delta{.content = prompt_text_.finish() + std::exchange(echo_, {}) + text};
    log_probs_.release(shown_bytes_, delta.log_probs);
    return delta;
  }

  const model::Tokenizer& tokenizer_;
  const DecoderOptions options_;
  engine::TextStream text_;
  std::string echo_;  // until it was shown
  model::Utf8Holder prompt_text_;
  std::size_t num_prompt_ = 0;
  PendingLogProbs log_probs_;
  std::size_t shown_bytes_ = 0;
};

enum class Part { content, reasoning, call };

/// A call of what cannot be a function's name is shown as text, for nobody could answer it.
Part part_of(const model::MessageHeader& header) {
  if (header.recipient.starts_with(kFunctions) &&
      is_plain_name(std::string_view(header.recipient).substr(kFunctions.size()))) {
    return Part::call;
  }
  return header.channel == "analysis" ? Part::reasoning : Part::content;
}

class ChatDecoder final : public ChoiceDecoder {
 public:
  ChatDecoder(const model::Harmony& harmony, DecoderOptions options)
      : tokenizer_(harmony.tokenizer()),
        options_(std::move(options)),
        parser_(harmony),
        content_(tokenizer_, options_.stops) {}

  Delta push_prompt(std::span<const engine::PromptToken> tokens) override {
    return {.prompt = shown_tokens(tokens, tokenizer_)};
  }
  Delta push(const TokenEvent& event) override {
    const auto& stop_ids = options_.stop_ids;
    if (std::ranges::find(stop_ids, event.token) != stop_ids.end()) return {};
    if (options_.log_probs == LogProbs::shown) {
      unplaced_.emplace_back(num_pushed_, shown(event, tokenizer_));
    }
    ++num_pushed_;
    return take(parser_.push(event.token));
  }
  Delta finish() override {
    const bool is_cut = !in_message() && options_.cut_header == CutHeader::dropped;
    Delta delta = is_cut ? Delta() : take(parser_.finish());
    const std::string rest = content_.finish();
    shown_bytes_ += rest.size();
    delta.content += rest;
    if (!content_.stopped()) log_probs_.release(std::string::npos, delta.log_probs);
    return delta;
  }
  bool stopped() const override { return content_.stopped(); }
  int num_tool_calls() const override { return num_calls_; }
  std::int64_t num_reasoning_tokens() const override { return num_reasoning_; }

 private:
  bool in_message() const {
    return !parser_.messages().empty() && parser_.messages().back().end == model::MessageEnd::open;
  }

  /// What the parser added to the last message, with the log-probabilities that can be shown.
  Delta take(const std::string& text) {
    place_tokens();
    Delta delta = place(text);
    shown_bytes_ += delta.content.size();
    log_probs_.release(shown_bytes_, delta.log_probs);
    return delta;
  }

  void place_tokens() {
    if (parser_.placed().empty()) {
      if (in_message()) unplaced_.clear();  // they were its header
      return;
    }
    const Part part = part_of(parser_.messages().back().header);
    if (part == Part::reasoning) num_reasoning_ += std::ssize(parser_.placed());
    std::size_t start = content_.taken_bytes();
    for (const auto& placed : parser_.placed()) {
      while (!unplaced_.empty() && unplaced_.front().first < placed.token) unplaced_.pop_front();
      if (part == Part::content && !unplaced_.empty()) {
        log_probs_.add(start, std::move(unplaced_.front().second));
        unplaced_.pop_front();
      }
      start += placed.bytes;
    }
    unplaced_.clear();
  }

  /// Text that the last message grew by, which may just have begun.
  Delta place(const std::string& text) {
    Delta delta;
    const auto& messages = parser_.messages();
    if (messages.empty()) return delta;
    const model::MessageHeader& header = messages.back().header;
    const bool is_new = messages.size() > num_seen_;
    num_seen_ = messages.size();
    // A stop string does not reach over messages, so what was held of the last one is shown first.
    if (is_new) delta.content = content_.finish();
    switch (part_of(header)) {
      case Part::reasoning:
        delta.reasoning = text;
        break;
      case Part::content:
        if (!text.empty()) delta.content += content_.push_text(text);
        break;
      case Part::call:
        if (is_new) ++num_calls_;
        if (is_new || !text.empty()) delta.tool_calls.push_back(call(header, is_new, text));
        break;
    }
    return delta;
  }

  ToolCallDelta call(const model::MessageHeader& header, bool is_new, const std::string& text) {
    ToolCallDelta delta{.index = num_calls_ - 1, .arguments = text};
    if (is_new) {
      delta.id = fmt::format(
          "call_{:016x}", Random(options_.call_seed).bits(static_cast<std::uint64_t>(delta.index)));
      delta.name = header.recipient.substr(kFunctions.size());
    }
    return delta;
  }

  const model::Tokenizer& tokenizer_;
  const DecoderOptions options_;
  model::HarmonyParser parser_;
  engine::TextStream content_;
  std::size_t num_seen_ = 0;
  int num_calls_ = 0;
  std::int64_t num_reasoning_ = 0;
  std::size_t num_pushed_ = 0;
  std::deque<std::pair<std::size_t, ShownLogProb>> unplaced_;  // of a header, by number
  PendingLogProbs log_probs_;
  std::size_t shown_bytes_ = 0;
};

}  // namespace

std::unique_ptr<ChoiceDecoder> make_text_decoder(const model::Tokenizer& tokenizer,
                                                 DecoderOptions options) {
  return std::make_unique<TextDecoder>(tokenizer, std::move(options));
}

std::unique_ptr<ChoiceDecoder> make_chat_decoder(const model::Harmony& harmony,
                                                 DecoderOptions options) {
  return std::make_unique<ChatDecoder>(harmony, std::move(options));
}

}  // namespace gauntlet::server::inline openai
