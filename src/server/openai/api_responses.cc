// The endpoints of responses: made like chats, and kept for those that follow.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "server/http/wire/request_head.h"
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

/// What the store knows it by: another account's ids mean nothing.
std::string kept_id(const Account& account, const std::string& id) {
  return fmt::format("{}:{}", account.id, id);
}

/// Of "/v1/responses/ID/cancel?...".
std::string id_of(const HttpRequest& request) {
  const std::string path = path_of(request.target).value_or("");
  const std::string_view rest = std::string_view(path).substr(kOneResponse.size());
  return std::string(rest.substr(0, rest.find('/')));
}

/// By "?stream=true", alone or among others.
bool asks_for_stream(std::string_view target) {
  for (std::size_t at = target.find('?'); at != target.npos; at = target.find('&', at + 1)) {
    const std::string_view field = target.substr(at + 1, target.find('&', at + 1) - at - 1);
    if (field == "stream=true") return true;
  }
  return false;
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
  Keeper(std::shared_ptr<ResponseStore> store, std::string id, KeptResponse kept)
      : store_(std::move(store)), id_(std::move(id)), kept_(std::move(kept)) {}
  ~Keeper() { store_->drop(id_); }
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  void keep(const Json& response) {
    std::optional<ApiError> fault;
    Fields fields(response, "", fault);
    for (ChatMessage& message : read_items(fields, "output", response["output"], {})) {
      kept_.messages.push_back(std::move(message));
    }
    check(!fault, "a response has an item that cannot be sent back");
    kept_.body = dump(response);
    store_->keep(id_, std::move(kept_));
  }

 private:
  const std::shared_ptr<ResponseStore> store_;
  const std::string id_;
  KeptResponse kept_;  // without its end
};

}  // namespace

std::optional<std::string> Api::kept_item(const Account& account,
                                          const std::string& item_id) const {
  const auto place = item_place(item_id);
  if (!place) return std::nullopt;
  const auto kept = responses_->find(kept_id(account, place->response_id));
  if (!kept) return std::nullopt;
  const Json output = Json::parse(kept->body)["output"];
  if (place->index >= output.size() || output[place->index]["id"] != item_id) return std::nullopt;
  return dump(output[place->index]);
}

std::shared_ptr<Reply> Api::responses(const Asked& asked) {
  if (const auto error = check_ready()) return make_reply(*error);
  const auto body = parse_body(asked.request.body);
  if (!body) return make_reply(body.error());
  auto parsed = parse_responses(*body, scope(), [&](const std::string& item_id) {
    return kept_item(asked.account, item_id);
  });
  if (!parsed) return make_reply(parsed.error());
  ChatRequest& chat = parsed->chat;
  if (!parsed->previous_id.empty()) {
    auto kept = responses_->find(kept_id(asked.account, parsed->previous_id));
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
  auto plan = chat_plan(asked, chat,
                        {.input = "input",
                         .format = "text.format",
                         .max_tokens = "max_output_tokens",
                         .volume = AnswerVolume::small});
  if (!plan) return make_reply(plan.error());

  const std::string id = fmt::format("{:016x}{:016x}", chance(), chance());
  ResponseHead head{.response = response_object(id, config_.model.name, parsed->echo),
                    .id = id,
                    .log_probs = chat.params.top_log_probs ? LogProbs::shown : LogProbs::omitted,
                    .opaque = parsed->opaque,
                    .delivery = chat.params.delivery};
  const std::string response_id = kept_id(asked.account, "resp_" + id);
  const std::string in_progress = dump(head.response);
  OnResponse on_done;
  if (parsed->keep == KeepResponse::yes) {
    KeptResponse kept{.messages = std::move(conversation), .account = asked.account.id};
    const auto keeper = std::make_shared<Keeper>(responses_, response_id, std::move(kept));
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

std::shared_ptr<Reply> Api::one_response(const Asked& asked) {
  const HttpRequest& request = asked.request;
  const std::string id = id_of(request);
  if (request.method == "DELETE") {
    if (!responses_->erase(kept_id(asked.account, id)))
      return make_reply(not_found(id, "response_id"));
    return make_reply({},
                      dump(Json{{"id", id}, {"object", "response.deleted"}, {"deleted", true}}));
  }
  if (asks_for_stream(request.target)) {
    return make_reply(ApiError{.message = "a response is streamed once, as it is made: leave out "
                                          "stream to get it whole",
                               .param = "stream"});
  }
  const auto body = responses_->body(kept_id(asked.account, id));
  return body ? make_reply({}, *body) : make_reply(not_found(id, "response_id"));
}

std::shared_ptr<Reply> Api::cancel_response(const Asked& asked) {
  const std::string id = id_of(asked.request);
  const auto body = responses_->body(kept_id(asked.account, id));
  if (!body) return make_reply(not_found(id, "response_id"));
  if (!responses_->cancel(kept_id(asked.account, id))) {
    return make_reply(ApiError{.message = "this response is done: only one that is being made can "
                                          "be cancelled",
                               .param = "response_id"});
  }
  Json response = Json::parse(*body);
  response["status"] = "cancelled";
  return make_reply({}, dump(response));
}

}  // namespace gauntlet::server::inline openai
