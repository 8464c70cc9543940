// The endpoints of responses: made like chats, and kept for those that follow.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "server/openai/api.h"
#include "server/openai/responses_request.h"
#include "server/openai/responses_writer.h"

namespace gauntlet::server::inline openai {
namespace {

constexpr std::string_view kOneResponse = "/v1/responses/";

ApiError not_found(const std::string& id, const char* param) {
  return {.status = 404,
          .message = fmt::format("there is no response '{}': it was never made here, was not to be "
                                 "stored, or has made room for newer ones",
                                 id.substr(0, 64)),
          .param = param,
          .code = "response_not_found"};
}

/// Of "/v1/responses/ID/cancel?...".
std::string id_of(const HttpRequest& request) {
  const std::string rest = request.target.substr(kOneResponse.size());
  return rest.substr(0, rest.find_first_of("/?"));
}

/// That every output answers a call: harmony has to name its function.
std::optional<ApiError> check_outputs(const std::vector<ChatMessage>& messages) {
  std::vector<std::string> calls;
  for (const ChatMessage& message : messages) {
    for (const ToolCall& call : message.tool_calls) calls.push_back(call.id);
    if (message.role != model::Role::tool) continue;
    if (std::ranges::find(calls, message.tool_call_id) == calls.end()) {
      return ApiError{.message = fmt::format("input has a function_call_output whose call_id '{}' "
                                             "names no function_call before it",
                                             message.tool_call_id.substr(0, 64)),
                      .param = "input"};
    }
  }
  return std::nullopt;
}

Json response_object(const std::string& id, const std::string& model, const std::string& echo) {
  Json response = {
      {"id", "resp_" + id},      {"object", "response"},    {"created_at", unix_now_s()},
      {"status", "in_progress"}, {"error", nullptr},        {"incomplete_details", nullptr},
      {"model", model},          {"output", Json::array()}, {"usage", nullptr}};
  response.update(Json::parse(echo));
  return response;
}

/// Keeps a response that is done, and forgets one that will never be.
class Keeper {
 public:
  Keeper(std::shared_ptr<ResponseStore> store, std::string id, std::vector<ChatMessage> messages)
      : store_(std::move(store)), id_(std::move(id)), messages_(std::move(messages)) {}
  ~Keeper() { store_->drop(id_); }
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  void keep(const Json& response) {
    std::optional<ApiError> fault;
    Fields fields(response, "", fault);
    for (ChatMessage& message : read_items(fields, "output", response["output"], {})) {
      messages_.push_back(std::move(message));
    }
    check(!fault, "a response has an item that cannot be sent back");
    store_->keep(id_, {.body = dump(response), .messages = std::move(messages_)});
  }

 private:
  const std::shared_ptr<ResponseStore> store_;
  const std::string id_;
  std::vector<ChatMessage> messages_;
};

}  // namespace

std::optional<std::string> Api::kept_item(const std::string& item_id) const {
  const auto place = item_place(item_id);
  if (!place) return std::nullopt;
  const auto kept = responses_->find(place->response_id);
  if (!kept) return std::nullopt;
  const Json output = Json::parse(kept->body)["output"];
  if (place->index >= output.size() || output[place->index]["id"] != item_id) return std::nullopt;
  return dump(output[place->index]);
}

std::shared_ptr<Reply> Api::responses(const HttpRequest& request) {
  if (const auto error = check_ready()) return make_reply(*error);
  const auto body = parse_body(request.body);
  if (!body) return make_reply(body.error());
  auto parsed = parse_responses(*body, scope(),
                                [this](const std::string& item_id) { return kept_item(item_id); });
  if (!parsed) return make_reply(parsed.error());
  ChatRequest& chat = parsed->chat;
  if (!parsed->previous_id.empty()) {
    auto kept = responses_->find(parsed->previous_id);
    if (!kept) return make_reply(not_found(parsed->previous_id, "previous_response_id"));
    chat.messages.insert(chat.messages.begin(), std::make_move_iterator(kept->messages.begin()),
                         std::make_move_iterator(kept->messages.end()));
  }
  if (const auto error = check_outputs(chat.messages)) return make_reply(*error);
  std::vector<ChatMessage> conversation = chat.messages;
  if (parsed->instructions) {
    chat.messages.insert(chat.messages.begin(),
                         {.role = model::Role::developer, .content = *parsed->instructions});
  }
  auto plan = chat_plan(
      chat, {.input = "input", .format = "text.format", .max_tokens = "max_output_tokens"});
  if (!plan) return make_reply(plan.error());

  const std::string id = fmt::format("{:016x}{:016x}", chance(), chance());
  ResponseHead head{.response = response_object(id, config_.model.name, parsed->echo),
                    .id = id,
                    .log_probs = chat.params.top_log_probs ? LogProbs::shown : LogProbs::omitted,
                    .delivery = chat.params.delivery};
  const std::string response_id = "resp_" + id;
  const std::string in_progress = dump(head.response);
  OnResponse on_done;
  if (parsed->keep == KeepResponse::yes) {
    const auto keeper = std::make_shared<Keeper>(responses_, response_id, std::move(conversation));
    on_done = [keeper](const Json& response) { keeper->keep(response); };
  }
  plan->writer = std::make_unique<ResponsesWriter>(std::move(head), std::move(on_done));
  const auto reply = GenerationReply::start(service_, metrics_, std::move(*plan));
  if (!reply) return make_reply(reply.error());
  if (parsed->keep == KeepResponse::yes) {
    responses_->begin(response_id, in_progress, [weak = std::weak_ptr<GenerationReply>(*reply)] {
      if (const auto running = weak.lock()) running->cancel();
    });
  }
  return *reply;
}

std::shared_ptr<Reply> Api::one_response(const HttpRequest& request) {
  const std::string id = id_of(request);
  const std::string path = request.target.substr(0, request.target.find('?'));
  const std::string_view rest = std::string_view(path).substr(kOneResponse.size() + id.size());
  if (rest == "/cancel") {
    if (request.method != "POST") return refuse_method(path, "POST");
    return cancel_response(id);
  }
  if (!rest.empty()) {
    return make_reply(ApiError{.status = 404, .message = "there is nothing at this path"});
  }
  if (request.method == "DELETE") {
    if (!responses_->erase(id)) return make_reply(not_found(id, "response_id"));
    return make_reply({},
                      dump(Json{{"id", id}, {"object", "response.deleted"}, {"deleted", true}}));
  }
  if (request.method != "GET") return refuse_method(path, "GET, DELETE");
  const auto body = responses_->body(id);
  return body ? make_reply({}, *body) : make_reply(not_found(id, "response_id"));
}

std::shared_ptr<Reply> Api::cancel_response(const std::string& id) {
  const auto body = responses_->body(id);
  if (!body) return make_reply(not_found(id, "response_id"));
  if (!responses_->cancel(id)) {
    return make_reply(ApiError{.message = "this response is done: only one that is being made can "
                                          "be cancelled",
                               .param = "response_id"});
  }
  Json response = Json::parse(*body);
  response["status"] = "cancelled";
  return make_reply({}, dump(response));
}

}  // namespace gauntlet::server::inline openai
