// One turn of any tokens through harmony's parser and everything behind it, for the fuzzer and for
// a test that draws tokens: whatever a model writes is a valid chat and a valid response.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "model/harmony/harmony.h"
#include "server/openai/chat_prompt.h"
#include "server/openai/generate/answer_writer.h"
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

/// The data of a stream's events; one that is no JSON is discarded.
inline std::vector<Json> events_of(const std::string& body) {
  std::vector<Json> events;
  for (std::size_t at = 0; (at = body.find("data: ", at)) != std::string::npos;) {
    const std::size_t end = body.find("\n\n", at);
    const std::string data = body.substr(at + 6, end - at - 6);
    if (data != "[DONE]") events.push_back(Json::parse(data, nullptr, false));
    at = end;
  }
  return events;
}

/// What a client makes of a chat's chunks is the message that comes whole.
inline std::string fault_of_chunks(const std::string& body, const Json& message) {
  Json gathered = {{"content", ""}, {"reasoning_content", ""}, {"tool_calls", Json::array()}};
  const auto add = [](Json& text, const Json& more) {
    text = text.get<std::string>() + more.get<std::string>();
  };
  for (const Json& chunk : events_of(body)) {
    if (chunk.is_discarded()) return "a chunk is no JSON";
    const Json& delta = chunk["choices"][0]["delta"];
    for (const char* name : {"content", "reasoning_content"}) {
      if (delta.contains(name)) add(gathered[name], delta[name]);
    }
    if (!delta.contains("tool_calls")) continue;
    for (const Json& call : delta["tool_calls"]) {
      Json& calls = gathered["tool_calls"];
      const auto index = call["index"].get<std::size_t>();
      if (call.contains("id")) {
        if (index != calls.size()) return "a call has a wrong index";
        calls.push_back({{"id", call["id"]}, {"type", "function"}, {"function", call["function"]}});
      } else {
        add(calls.at(index)["function"]["arguments"], call["function"]["arguments"]);
      }
    }
  }
  const Json whole = {{"content", message["content"].is_null() ? Json("") : message["content"]},
                      {"reasoning_content", message.value("reasoning_content", Json(""))},
                      {"tool_calls", message.value("tool_calls", Json::array())}};
  return gathered == whole ? "" : "the chunks say " + dump(gathered) + ", but whole " + dump(whole);
}

/// The events' numbers go up by one, every item that begins ends before the next with what its
/// deltas add up to, and the last event has them all.
inline std::string fault_of_events(const std::string& body, const std::string& last) {
  std::int64_t number = 0;
  std::string text;
  Json open, items = Json::array();
  const std::vector<Json> events = events_of(body);
  for (const Json& event : events) {
    if (event.is_discarded()) return "an event is no JSON";
    if (event["sequence_number"] != number++) return "an event has a wrong number";
    const std::string type = event["type"];
    if (type == "response.output_item.added") {
      if (!open.is_null()) return "an item begins within another";
      open = event["item"];
      text.clear();
    } else if (type.ends_with(".delta")) {
      if (open.is_null() || event["item_id"] != open["id"]) return "a delta is of no item";
      text += event["delta"].get<std::string>();
    } else if (type == "response.output_item.done") {
      const Json& item = event["item"];
      if (open.is_null() || item["id"] != open["id"]) return "an item ends that did not begin";
      const Json& said =
          item.contains("arguments") ? item["arguments"] : item["content"][0]["text"];
      if (said != text) return "the deltas of an item do not add up to it";
      items.push_back(item);
      open = nullptr;
    }
  }
  if (!open.is_null()) return "an item never ends";
  if (number < 3 || events.back()["type"] != last) return "the stream does not end in " + last;
  return events.back()["response"]["output"] == items ? "" : "the last event has other items";
}

}  // namespace turn_detail

/// Empty, or one sentence that says what is wrong with what these tokens became. An odd number of
/// them is one that was cut.
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
  ResponsesWriter broken({.response = in_progress(), .id = "1", .delivery = Delivery::streamed},
                         nullptr);
  std::string content, spelled, streamed, numbered, ended;
  bool is_over = false, is_early = false;
  const auto take = [&](const Delta& delta) {
    content += delta.content;
    for (const auto& log_prob : delta.log_probs) spelled += log_prob.bytes;
    std::string early;  // of what comes whole
    whole->delta(0, delta, early);
    response.delta(0, delta, early);
    is_early |= !early.empty();
    stream->delta(0, delta, streamed);
    events.delta(0, delta, numbered);
    if (!is_over) broken.delta(0, delta, ended);
  };
  for (const std::int32_t id : ids) {
    take(decoder->push({.token = id}));
    if (decoder->stopped()) break;
  }
  if (is_early) return "an answer that comes whole began before its end";
  is_over = true;
  ended += broken.failed({.status = 500, .message = "a step failed"});
  take(decoder->finish());
  const bool is_cut = ids.size() % 2 != 0;
  const std::string word =
      finish_word(is_cut ? engine::FinishReason::length : engine::FinishReason::stop,
                  decoder->num_tool_calls());
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
  const Json& message = chat["choices"][0]["message"];
  for (const std::string& fault :
       {turn_detail::fault_of_chunks(streamed, message),
        turn_detail::fault_of_events(numbered,
                                     is_cut ? "response.incomplete" : "response.completed"),
        turn_detail::fault_of_events(ended, "response.failed")}) {
    if (!fault.empty()) return fault;
  }
  if (turn_detail::events_of(numbered).back()["response"] != kept) {
    return "the response that was streamed is not the whole one";
  }

  std::optional<ApiError> refused;
  Fields fields(kept, "", refused);
  read_items(fields, "output", kept["output"], {});
  if (refused) return "an item cannot be sent back: " + refused->message;
  const Json again = {{"messages", Json::array({message})}};
  const bool is_empty = content.empty() && kept["output"].empty();
  const auto parsed = parse_chat(again, {});
  if (!parsed && !is_empty) return "the message cannot be sent back: " + parsed.error().message;
  if (!parsed) return "";
  if (const auto rendered = render_chat(*parsed, harmony); !rendered) {
    return "the message cannot be rendered again: " + rendered.error().message;
  }
  return "";
}

}  // namespace gauntlet::server::inline openai
