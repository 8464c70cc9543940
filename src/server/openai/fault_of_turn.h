// One turn of any tokens through harmony's parser and everything behind it, for the fuzzer and for
// a test that draws tokens: whatever a model writes is a valid chat and a valid response.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "model/harmony.h"
#include "server/openai/answer_writer.h"
#include "server/openai/responses_request.h"
#include "server/openai/responses_writer.h"

namespace gauntlet::server::inline openai {

namespace turn_detail {

/// Without what a cut character is shown as: where messages meet, bytes that were cut apart would
/// make characters of their own.
inline std::string ascii_of(const std::string& text) {
  std::string ascii;
  for (const char c : text) {
    if ((c & 0x80) == 0) ascii += c;
  }
  return ascii;
}

/// In its order. A token whose first bytes ended a header is spelled whole, though only the rest of
/// it is content.
inline bool is_part_of(const std::string& part, const std::string& whole) {
  std::size_t at = 0;
  for (const char c : whole) at += at < part.size() && part[at] == c ? 1 : 0;
  return at == part.size();
}

inline bool ends_apart(const std::string& a, const std::string& b) {
  return a.empty() != b.empty() || (!a.empty() && a.back() != b.back());
}

inline Json in_progress() {
  return {{"id", "resp_1"}, {"status", "in_progress"}, {"output", Json::array()}};
}

/// The events' numbers go up by one, and every item that begins ends before the next.
inline std::string fault_of_events(const std::string& body) {
  std::int64_t number = 0;
  bool is_open = false;
  for (std::size_t at = 0; (at = body.find("\ndata: ", at)) != std::string::npos; ++at) {
    const auto event =
        Json::parse(body.substr(at + 7, body.find("\n\n", at) - at - 7), nullptr, false);
    if (event.is_discarded()) return "an event is no JSON";
    if (event["sequence_number"] != number++) return "an event has a wrong number";
    const bool begins = event["type"] == "response.output_item.added";
    const bool ends = event["type"] == "response.output_item.done";
    if (begins && is_open) return "an item begins within another";
    if (ends && !is_open) return "an item ends that did not begin";
    is_open = begins || (is_open && !ends);
  }
  return is_open ? "an item never ends" : number < 3 ? "the stream has no end" : "";
}

}  // namespace turn_detail

/// Empty, or one sentence that says what is wrong with what these tokens became.
inline std::string fault_of_turn(const model::Harmony& harmony, std::span<const std::int32_t> ids,
                                 const std::vector<std::string>& stops) {
  using turn_detail::in_progress;
  const auto decoder = make_chat_decoder(harmony, {.stops = stops, .log_probs = LogProbs::shown});
  const AnswerHead head{.kind = AnswerKind::chat, .id = "c", .log_probs = LogProbs::shown};
  const auto whole = make_answer_writer(head, Delivery::whole, 1);
  const auto stream = make_answer_writer(head, Delivery::streamed, 1);
  Json kept;
  ResponsesWriter response({.response = in_progress(), .id = "1"},
                           [&](const Json& made) { kept = made; });
  ResponsesWriter events({.response = in_progress(), .id = "1", .delivery = Delivery::streamed},
                         nullptr);
  std::string content, spelled, streamed, numbered;
  const auto take = [&](const Delta& delta) {
    content += delta.content;
    for (const auto& log_prob : delta.log_probs) spelled += log_prob.bytes;
    whole->delta(0, delta);
    response.delta(0, delta);
    streamed += stream->delta(0, delta);
    numbered += events.delta(0, delta);
  };
  for (const std::int32_t id : ids) {
    take(decoder->push({.token = id}));
    if (decoder->stopped()) break;
  }
  take(decoder->finish());
  const std::string word = finish_word(engine::FinishReason::stop, decoder->num_tool_calls());
  for (AnswerWriter* writer : {whole.get(), static_cast<AnswerWriter*>(&response)}) {
    writer->finish(0, word);
  }
  streamed += stream->finish(0, word);
  streamed += stream->done({});
  numbered += events.finish(0, word);
  numbered += events.done({});
  const Json chat = Json::parse(whole->done({}), nullptr, false);
  if (chat.is_discarded()) return "the chat is no JSON";
  if (!Json::accept(response.done({}))) return "the response is no JSON";
  if (!streamed.ends_with("data: [DONE]\n\n")) return "the stream has no end";

  const std::string shown = turn_detail::ascii_of(spelled);
  const std::string said = turn_detail::ascii_of(content);
  if (!turn_detail::is_part_of(said, shown) ||
      (stops.empty() && turn_detail::ends_apart(said, shown))) {
    return "the log-probabilities spell '" + shown + "', but the content is '" + said + "'";
  }
  if (const auto fault = turn_detail::fault_of_events(numbered); !fault.empty()) return fault;

  std::optional<ApiError> refused;
  Fields fields(kept, "", refused);
  read_items(fields, "output", kept["output"], {});
  if (refused) return "an item cannot be sent back: " + refused->message;
  const Json again = {{"messages", Json::array({chat["choices"][0]["message"]})}};
  const bool is_empty = content.empty() && kept["output"].empty();
  const auto parsed = parse_chat(again, {});
  if (!parsed && !is_empty) return "the message cannot be sent back: " + parsed.error().message;
  return "";
}

}  // namespace gauntlet::server::inline openai
