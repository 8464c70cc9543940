#include "server/openai/responses_writer.h"

#include <fmt/format.h>

#include <charconv>

#include "core/check.h"

namespace gauntlet::server::inline openai {
namespace {

Json usage_of(const Usage& usage) {
  return {{"input_tokens", usage.prompt_tokens},
          {"input_tokens_details", {{"cached_tokens", usage.cached_tokens}}},
          {"output_tokens", usage.completion_tokens},
          {"output_tokens_details", {{"reasoning_tokens", usage.reasoning_tokens}}},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

}  // namespace

ResponsesWriter::ResponsesWriter(ResponseHead head, OnResponse on_done)
    : head_(std::move(head)), on_done_(std::move(on_done)), response_(head_.response) {}

void ResponsesWriter::event(const char* type, const Json& fields) {
  const std::int64_t number = next_number_++;
  if (head_.delivery == Delivery::whole) return;
  Json event = {{"type", type}, {"sequence_number", number}};
  event.update(fields);
  out_ += fmt::format("event: {}\ndata: {}\n\n", type, dump(event));
}

void ResponsesWriter::item_event(const char* type, const Json& fields) {
  Json about = {{"item_id", item_id_}, {"output_index", response_["output"].size()}};
  if (kind_ != Kind::call) about["content_index"] = 0;
  about.update(fields);
  event(type, about);
}

void ResponsesWriter::begin() {
  if (std::exchange(begun_, true)) return;
  event("response.created", {{"response", response_}});
  event("response.in_progress", {{"response", response_}});
}

Json ResponsesWriter::part() const {
  if (kind_ == Kind::reasoning) return {{"type", "reasoning_text"}, {"text", text_}};
  return {{"type", "output_text"},
          {"text", text_},
          {"annotations", Json::array()},
          {"logprobs", log_probs_}};
}

Json ResponsesWriter::item(const char* status) const {
  // An item begins without the part that it will have.
  const bool begins = status == std::string_view("in_progress");
  const Json content = begins ? Json::array() : Json::array({part()});
  switch (*kind_) {
    case Kind::reasoning: {
      Json reasoning = {{"id", item_id_},
                        {"type", "reasoning"},
                        {"status", status},
                        {"summary", Json::array()},
                        {"content", content}};
      if (head_.opaque == OpaqueReasoning::included) {
        reasoning["encrypted_content"] =
            begins ? Json() : Json(std::string(kOpenReasoning) + text_);
      }
      return reasoning;
    }
    case Kind::message:
      return {{"id", item_id_},
              {"type", "message"},
              {"status", status},
              {"role", "assistant"},
              {"content", content}};
    case Kind::call:
      break;
  }
  return {{"id", item_id_},      {"type", "function_call"}, {"status", status},
          {"call_id", call_id_}, {"name", name_},           {"arguments", text_}};
}

void ResponsesWriter::open(Kind kind, const ToolCallDelta* call) {
  close("completed");
  constexpr const char* kPrefixes[] = {"rs", "msg", "fc"};
  kind_ = kind;
  item_id_ = fmt::format("{}_{}_{}", kPrefixes[static_cast<std::size_t>(kind)], head_.id,
                         response_["output"].size());
  text_.clear();
  log_probs_ = Json::array();
  if (call) {
    call_id_ = call->id;
    name_ = call->name;
  }
  event("response.output_item.added",
        {{"output_index", response_["output"].size()}, {"item", item("in_progress")}});
  if (!call) item_event("response.content_part.added", {{"part", part()}});
}

void ResponsesWriter::close(const char* status) {
  if (!kind_) return;
  switch (*kind_) {
    case Kind::reasoning:
      item_event("response.reasoning_text.done", {{"text", text_}});
      break;
    case Kind::message:
      item_event("response.output_text.done", {{"text", text_}, {"logprobs", log_probs_}});
      break;
    case Kind::call:
      item_event("response.function_call_arguments.done", {{"name", name_}, {"arguments", text_}});
      break;
  }
  if (kind_ != Kind::call) item_event("response.content_part.done", {{"part", part()}});
  Json done = item(status);
  event("response.output_item.done",
        {{"output_index", response_["output"].size()}, {"item", done}});
  response_["output"].push_back(std::move(done));
  kind_.reset();
}

void ResponsesWriter::add_text(Kind kind, const std::string& text,
                               const std::vector<ShownLogProb>& log_probs) {
  if (text.empty() && log_probs.empty()) return;
  if (kind_ != kind) open(kind);
  text_ += text;
  if (kind == Kind::reasoning) {
    item_event("response.reasoning_text.delta", {{"delta", text}});
    return;
  }
  Json shown = head_.log_probs == LogProbs::shown ? chat_log_probs(log_probs) : Json::array();
  log_probs_.insert(log_probs_.end(), shown.begin(), shown.end());
  item_event("response.output_text.delta", {{"delta", text}, {"logprobs", std::move(shown)}});
}

void ResponsesWriter::add_call(const ToolCallDelta& call) {
  if (!call.id.empty()) open(Kind::call, &call);
  check(kind_ == Kind::call, "a call's arguments came before its name");
  if (call.arguments.empty()) return;
  text_ += call.arguments;
  item_event("response.function_call_arguments.delta", {{"delta", call.arguments}});
}

void ResponsesWriter::delta(int, const Delta& delta, std::string& out) {
  if (delta.empty()) return;
  begin();
  add_text(Kind::message, delta.content, delta.log_probs);
  add_text(Kind::reasoning, delta.reasoning, {});
  for (const ToolCallDelta& call : delta.tool_calls) add_call(call);
  out += take();
}

std::string ResponsesWriter::finish(int, const std::string& finish_word) {
  begin();
  was_cut_ = finish_word == "length";
  close(was_cut_ ? "incomplete" : "completed");
  return take();
}

std::string ResponsesWriter::done(const Usage& usage) {
  response_["status"] = was_cut_ ? "incomplete" : "completed";
  if (was_cut_) response_["incomplete_details"] = {{"reason", "max_output_tokens"}};
  response_["usage"] = usage_of(usage);
  event(was_cut_ ? "response.incomplete" : "response.completed", {{"response", response_}});
  if (on_done_) on_done_(response_);
  return head_.delivery == Delivery::whole ? dump(response_) : take();
}

std::size_t ResponsesWriter::unwritten_bytes() const {
  constexpr std::size_t kEvents = 4;  // that repeat an item, the last of them all items
  constexpr std::size_t kLogProbBytes = 1024;
  return kEvents * (text_.size() + log_probs_.size() * kLogProbBytes);
}

std::string ResponsesWriter::failed(const ApiError& error) {
  begin();
  close("incomplete");
  response_["status"] = "failed";
  response_["error"] = {{"code", "server_error"}, {"message", error.message}};
  event("response.failed", {{"response", response_}});
  return take();
}

std::optional<ItemPlace> item_place(const std::string& item_id) {
  const std::size_t first = item_id.find('_');
  const std::size_t last = item_id.rfind('_');
  if (first == std::string::npos || last <= first) return std::nullopt;
  ItemPlace place{.response_id = "resp_" + item_id.substr(first + 1, last - first - 1)};
  const char* const end = item_id.data() + item_id.size();
  const auto [at, failed] = std::from_chars(item_id.data() + last + 1, end, place.index);
  if (failed != std::errc() || at != end) return std::nullopt;
  return place;
}

}  // namespace gauntlet::server::inline openai
