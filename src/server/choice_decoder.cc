#include "server/choice_decoder.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/random.h"
#include "model/harmony_parser.h"

namespace gauntlet::server {
namespace {

using engine::TokenEvent;

constexpr std::string_view kFunctions = "functions.";

ShownLogProb shown(const TokenEvent& event, const model::Tokenizer& tokenizer) {
  ShownLogProb log_prob{.bytes = std::string(tokenizer.token_bytes(event.token)),
                        .log_probability = event.log_probability};
  for (const engine::TokenLogProb& top : event.top) {
    log_prob.top.emplace_back(tokenizer.token_bytes(top.token), top.log_probability);
  }
  return log_prob;
}

bool is_silent(std::int32_t token, const model::Tokenizer& tokenizer,
               const std::vector<std::int32_t>& stop_ids) {
  return tokenizer.is_special(token) || std::ranges::find(stop_ids, token) != stop_ids.end();
}

class TextDecoder final : public ChoiceDecoder {
 public:
  TextDecoder(const model::Tokenizer& tokenizer, DecoderOptions options)
      : tokenizer_(tokenizer), options_(std::move(options)), text_(tokenizer, options_.stops) {}

  Delta push(const TokenEvent& event) override {
    if (is_silent(event.token, tokenizer_, options_.stop_ids)) return {};
    Delta delta{.content = text_.push(event.token)};
    if (options_.log_probs == LogProbs::shown) delta.log_probs.push_back(shown(event, tokenizer_));
    return delta;
  }
  Delta finish() override { return {.content = text_.finish()}; }
  bool stopped() const override { return text_.stopped(); }
  int num_tool_calls() const override { return 0; }

 private:
  const model::Tokenizer& tokenizer_;
  const DecoderOptions options_;
  engine::TextStream text_;
};

enum class Part { content, reasoning, call };

Part part_of(const model::MessageHeader& header) {
  if (header.recipient.starts_with(kFunctions)) return Part::call;
  return header.channel == "analysis" ? Part::reasoning : Part::content;
}

class ChatDecoder final : public ChoiceDecoder {
 public:
  ChatDecoder(const model::Harmony& harmony, DecoderOptions options)
      : tokenizer_(harmony.tokenizer()),
        options_(std::move(options)),
        parser_(harmony),
        content_(tokenizer_, options_.stops) {}

  Delta push(const TokenEvent& event) override {
    const auto& stop_ids = options_.stop_ids;
    if (std::ranges::find(stop_ids, event.token) != stop_ids.end()) return {};
    Delta delta = place(parser_.push(event.token));
    const bool in_content =
        in_message() && part_of(parser_.messages().back().header) == Part::content;
    if (options_.log_probs == LogProbs::shown && in_content &&
        !tokenizer_.is_special(event.token)) {
      delta.log_probs.push_back(shown(event, tokenizer_));
    }
    return delta;
  }
  Delta finish() override {
    const bool is_cut = !in_message() && options_.cut_header == CutHeader::dropped;
    Delta delta = is_cut ? Delta() : place(parser_.finish());
    delta.content += content_.finish();
    return delta;
  }
  bool stopped() const override { return content_.stopped(); }
  int num_tool_calls() const override { return num_calls_; }

 private:
  bool in_message() const {
    return !parser_.messages().empty() && parser_.messages().back().end == model::MessageEnd::open;
  }

  /// Text that the last message grew by, which may just have begun.
  Delta place(const std::string& text) {
    Delta delta;
    const auto& messages = parser_.messages();
    if (messages.empty()) return delta;
    const model::MessageHeader& header = messages.back().header;
    const bool is_new = messages.size() > num_seen_;
    num_seen_ = messages.size();
    switch (part_of(header)) {
      case Part::reasoning:
        delta.reasoning = text;
        break;
      case Part::content:
        if (!text.empty()) delta.content = content_.push_text(text);
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

}  // namespace gauntlet::server
