// Responses without a socket: what comes in which order, what is kept, and what is sent back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/random.h"
#include "engine/steps/fake_executor.h"
#include "engine/tiny_tokenizer.h"
#include "server/openai/api.h"
#include "server/openai/generate/answered.h"

namespace gauntlet::server::inline openai {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kThought = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant";
constexpr const char* kFinal = "<|channel|>final<|message|>hello";
constexpr const char* kCall =
    R"(<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a":1}<|call|>)";

std::vector<Json> events_of(const std::string& body) {
  std::vector<Json> events;
  for (std::size_t at = 0; (at = body.find("data: ", at)) != std::string::npos; ++at) {
    events.push_back(Json::parse(body.substr(at + 6, body.find("\n\n", at) - at - 6)));
  }
  return events;
}

class ResponsesTest : public ::testing::Test {
 protected:
  /// The model says the script after its prompt, whose size is that of the first history.
  ResponsesTest() {
    executor_.next = [this](const engine::FakeExecutor::History& history) {
      if (prompt_size_ == 0) prompt_size_ = history.size();
      const std::size_t at = history.size() - prompt_size_;
      return at < script_.size() ? script_[at] : tiny_special("<|return|>");
    };
  }
  void script(const std::string& text) {
    script_ = engine::tiny_tokenizer().encode(text, model::SpecialTokens::as_special);
    prompt_size_ = 0;
  }

  std::shared_ptr<Reply> send(const std::string& method, const std::string& target,
                              const std::string& body = "") {
    return api_.handle({.id = "r1", .method = method, .target = target, .body = body});
  }
  Answered read(Reply& reply) { return read_answer(reply, service_); }
  Answered ask(const std::string& method, const std::string& target) {
    return read(*send(method, target));
  }
  /// With these fields, of a model that says this.
  Answered respond(const std::string& said, const std::string& fields) {
    script(said);
    return read(*send("POST", "/v1/responses", R"({"temperature": 0, )" + fields + "}"));
  }
  std::int64_t input_tokens(const std::string& fields) {
    return respond("<|return|>", fields).json()["usage"]["input_tokens"];
  }

  engine::FakeExecutor executor_{tiny_config(), 512};
  engine::Service service_{executor_, {}};
  ServerMetrics metrics_;
  Api api_{{.model = {.name = "tiny", .vocab = tiny_config().vocab}, .kept_responses = {4, 100000}},
           service_,
           engine::tiny_tokenizer(),
           metrics_};
  engine::FakeExecutor::History script_;
  std::size_t prompt_size_ = 0;
};

TEST_F(ResponsesTest, has_an_item_for_what_was_reasoned_said_and_called) {
  const Json json = respond(std::string(kThought) + kFinal, R"("input": "hi")").json();
  EXPECT_THAT(json["id"].get<std::string>(), ::testing::StartsWith("resp_"));
  EXPECT_EQ(json["object"], "response");
  EXPECT_EQ(json["status"], "completed");
  ASSERT_EQ(json["output"].size(), 2u);
  EXPECT_EQ(json["output"][0]["type"], "reasoning");
  EXPECT_EQ(json["output"][0]["content"][0]["text"], "hm");
  EXPECT_EQ(json["output"][1]["role"], "assistant");
  EXPECT_EQ(json["output"][1]["content"][0]["text"], "hello");
  EXPECT_GT(json["usage"]["output_tokens_details"]["reasoning_tokens"], 0);
  EXPECT_TRUE(json["usage"]["input_tokens_details"].contains("cached_tokens"));

  const Json call = respond(kCall, R"("input": "hi", "tools": [{"type": "function", "name": "f"}])")
                        .json()["output"][0];
  EXPECT_EQ(call["type"], "function_call");
  EXPECT_EQ(call["name"], "f");
  EXPECT_EQ(call["arguments"], R"({"a":1})");
  EXPECT_FALSE(call["call_id"].get<std::string>().empty());
}

TEST_F(ResponsesTest, streams_events_in_their_documented_order) {
  const Answered answered =
      respond(std::string(kThought) + kFinal + "<|end|><|start|>assistant" + kCall,
              R"("input": "hi", "stream": true)");
  std::vector<std::string> types;
  std::int64_t number = 0;
  for (const Json& event : events_of(answered.body)) {
    EXPECT_EQ(event["sequence_number"], number++);
    const std::string type = event["type"];
    if (types.empty() || types.back() != type) types.push_back(type);
  }
  EXPECT_THAT(
      types,
      ElementsAre("response.created", "response.in_progress", "response.output_item.added",
                  "response.content_part.added", "response.reasoning_text.delta",
                  "response.reasoning_text.done", "response.content_part.done",
                  "response.output_item.done", "response.output_item.added",
                  "response.content_part.added", "response.output_text.delta",
                  "response.output_text.done", "response.content_part.done",
                  "response.output_item.done", "response.output_item.added",
                  "response.function_call_arguments.delta", "response.function_call_arguments.done",
                  "response.output_item.done", "response.completed"));
}

TEST_F(ResponsesTest, a_stream_adds_up_to_the_whole_answer) {
  const std::string said = std::string(kThought) + kFinal;
  const Json whole = respond(said, R"("input": "hi")").json()["output"];
  Json gathered = Json::array();
  for (const Json& event : events_of(respond(said, R"("input": "hi", "stream": true)").body)) {
    const std::string type = event["type"];
    if (type == "response.output_item.added") gathered.push_back("");
    if (type.ends_with(".delta")) {
      Json& text = gathered.at(event["output_index"].get<std::size_t>());
      text = text.get<std::string>() + event["delta"].get<std::string>();
    }
  }
  ASSERT_EQ(gathered.size(), whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(gathered[i], whole[i]["content"][0]["text"]);
  }
}

TEST_F(ResponsesTest, says_that_the_tokens_ran_out) {
  const Json json = respond("<|channel|>final<|message|>one two three",
                            R"("input": "hi", "max_output_tokens": 6)")
                        .json();
  EXPECT_EQ(json["status"], "incomplete");
  EXPECT_EQ(json["incomplete_details"]["reason"], "max_output_tokens");
  ASSERT_EQ(json["output"].size(), 1u) << json;
  EXPECT_EQ(json["output"][0]["status"], "incomplete");
  EXPECT_THAT(respond("<|channel|>final<|message|>one two three",
                      R"("input": "hi", "stream": true, "max_output_tokens": 6)")
                  .body,
              HasSubstr("event: response.incomplete"));
}

TEST_F(ResponsesTest, a_conversation_goes_on_from_what_is_kept_as_from_what_is_sent_back) {
  const Json first = respond(kCall, R"("input": "hi", "instructions": "Be brief.")").json();
  const std::string output = Json{
      {"type", "function_call_output"},
      {"call_id", first["output"][0]["call_id"]},
      {"output", "42"}}.dump();
  const auto kept = input_tokens(R"("input": [)" + output + R"(], "previous_response_id": )" +
                                 first["id"].dump());
  const auto sent = input_tokens(R"("input": [{"role": "user", "content": "hi"}, )" +
                                 first["output"][0].dump() + "," + output + "]");
  const auto named = input_tokens(
      R"("input": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
                   {"type": "item_reference", "id": )" +
      first["output"][0]["id"].dump() + "}," + output + "]");
  EXPECT_EQ(kept, sent);
  EXPECT_EQ(named, sent);
}

TEST_F(ResponsesTest, reasoning_is_sent_back_until_the_answer_it_led_to) {
  const Json output = respond(std::string(kThought) + kCall, R"("input": "hi")").json()["output"];
  ASSERT_EQ(output.size(), 2u);
  const std::string answer = Json{
      {"type", "function_call_output"},
      {"call_id", output[1]["call_id"]},
      {"output", "42"}}.dump();
  const std::string asked = R"("input": [{"role": "user", "content": "hi"}, )";
  const auto with =
      input_tokens(asked + output[0].dump() + "," + output[1].dump() + "," + answer + "]");
  const auto without = input_tokens(asked + output[1].dump() + "," + answer + "]");
  EXPECT_GT(with, without);
}

TEST_F(ResponsesTest, reasoning_comes_back_from_clients_that_may_not_read_it) {
  const Json output = respond(std::string(kThought) + kCall,
                              R"("input": "hi", "include": ["reasoning.encrypted_content"])")
                          .json()["output"];
  const std::string answer = Json{
      {"type", "function_call_output"},
      {"call_id", output[1]["call_id"]},
      {"output", "42"}}.dump();
  const auto with = [&](const Json& reasoning) {
    return input_tokens(R"("input": [{"role": "user", "content": "hi"}, )" + reasoning.dump() +
                        "," + output[1].dump() + "," + answer + "]");
  };
  const Json unread = {{"type", "reasoning"},
                       {"summary", Json::array()},
                       {"encrypted_content", output[0]["encrypted_content"]}};
  EXPECT_EQ(with(unread), with(output[0]));
  const Json foreign = {
      {"type", "reasoning"}, {"summary", Json::array()}, {"encrypted_content", "gAAAA"}};
  EXPECT_LT(with(foreign), with(output[0]));
  EXPECT_FALSE(
      respond(kThought, R"("input": "hi")").json()["output"][0].contains("encrypted_content"));
}

TEST_F(ResponsesTest, does_not_show_tools_that_others_run) {
  const std::string function = R"({"type": "function", "name": "f"})";
  const Json json =
      respond(kFinal, R"("input": "hi", "tools": [{"type": "web_search"}, )" + function + "]")
          .json();
  ASSERT_EQ(json["tools"].size(), 1u) << json;
  EXPECT_EQ(json["tools"][0]["name"], "f");
  const Answered misspelled =
      respond(kFinal, R"("input": "hi", "tools": [{"type": "functoin"}, )" + function + "]");
  EXPECT_EQ(misspelled.json()["error"]["param"], "tools[0].type");
}

TEST_F(ResponsesTest, keeps_what_it_may_until_it_is_deleted) {
  const std::string id = respond(kFinal, R"("input": "hi")").json()["id"];
  const std::string path = "/v1/responses/" + id;
  EXPECT_EQ(ask("GET", path).json()["output"][0]["content"][0]["text"], "hello");
  EXPECT_EQ(ask("GET", path + "?stream=false").status, 200);
  EXPECT_EQ(ask("GET", path + "?starting_after=1&stream=true").status, 400) << "it was streamed";
  EXPECT_EQ(ask("POST", path + "/cancel").status, 400) << "it is done";
  EXPECT_EQ(ask("PUT", path).status, 405);
  EXPECT_EQ(ask("GET", path + "/cancel").status, 405);
  EXPECT_EQ(ask("HEAD", path).status, 200);
  EXPECT_EQ(ask("GET", "/v1%2Fresponses/resp%5F" + id.substr(5)).json()["id"], id);
  EXPECT_EQ(ask("GET", path + "/nothing").status, 404);
  EXPECT_EQ(ask("DELETE", path).json()["deleted"], true);
  EXPECT_EQ(ask("GET", path).status, 404);
  EXPECT_EQ(ask("DELETE", path).status, 404);

  const std::string unkept = respond(kFinal, R"("input": "hi", "store": false)").json()["id"];
  EXPECT_EQ(ask("GET", "/v1/responses/" + unkept).status, 404);
  const Answered next =
      respond(kFinal, R"("input": "hi", "previous_response_id": ")" + unkept + "\"");
  EXPECT_EQ(next.status, 404);
  EXPECT_EQ(next.json()["error"]["param"], "previous_response_id");
}

TEST_F(ResponsesTest, one_that_is_being_made_can_be_cancelled) {
  script("<|channel|>final<|message|>" + std::string(300, 'a'));
  const auto reply =
      send("POST", "/v1/responses", R"({"input": "hi", "stream": true, "temperature": 0})");
  std::string body;
  for (int i = 0; i < 100 && body.find("delta") == std::string::npos; ++i) {
    service_.step();
    if (const auto piece = reply->take()) body += piece->body;
  }
  ASSERT_FALSE(events_of(body).empty()) << body;
  const std::string id = events_of(body).at(0)["response"]["id"];
  EXPECT_EQ(ask("GET", "/v1/responses/" + id).json()["status"], "in_progress");
  EXPECT_EQ(ask("POST", "/v1/responses/" + id + "/cancel").json()["status"], "cancelled");
  EXPECT_THAT(read(*reply).body, HasSubstr("event: response.failed"));
  EXPECT_EQ(service_.stats().num_running, 0);
}

TEST_F(ResponsesTest, one_that_nobody_reads_is_forgotten) {
  script(std::string(300, 'a'));
  auto reply =
      send("POST", "/v1/responses", R"({"input": "hi", "stream": true, "temperature": 0})");
  std::string body;
  for (int i = 0; i < 100 && body.empty(); ++i) {
    service_.step();
    if (const auto piece = reply->take()) body += piece->body;
  }
  const std::string id = events_of(body).at(0)["response"]["id"];
  reply->abandon();
  reply.reset();
  while (service_.step()) {
  }
  EXPECT_EQ(ask("GET", "/v1/responses/" + id).status, 404);
}

TEST_F(ResponsesTest, names_the_field_that_is_wrong) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("inputs": "a")", "input"},
      {R"("input": [])", "input"},
      {R"("input": 3)", "input"},
      {R"("input": [{"type": "web_search_call"}])", "input[0].type"},
      {R"("input": [{"role": "user", "content": [{"type": "input_image"}]}])",
       "input[0].content[0].type"},
      {R"("input": [{"type": "item_reference", "id": "msg_1_0"}])", "input[0].id"},
      {R"("input": [{"type": "function_call_output", "call_id": "x", "output": "y"}])", "input"},
      {R"("input": "a", "tools": [{"type": "web_search"}])", "tools[0].type"},
      {R"("input": "a", "tool_choice": "required")", "tool_choice"},
      {R"("input": "a", "reasoning": {"effort": "huge"})", "reasoning.effort"},
      {R"("input": "a", "text": {"format": {"type": "json_schema", "name": "x"}})",
       "text.format.schema"},
      {R"("input": "a", "text": {"format": {"type": "json_object"}})", "text.format"},
      {R"("input": "a", "background": true)", "background"},
      {R"("input": "a", "conversation": "c")", "conversation"},
      {R"("input": "a", "truncation": "auto")", "truncation"},
      {R"("input": "a", "max_output_tokens": 0)", "max_output_tokens"},
      {R"("input": "a", "max_output_tokens": 5000)", "max_output_tokens"},
      {R"("input": "a", "n": 2)", "n"},
      {R"("input": "a", "messages": [])", "messages"},
  };
  for (const auto& [fields, param] : cases) {
    const Answered answered = respond("", fields);
    EXPECT_EQ(answered.status, 400) << fields;
    EXPECT_EQ(answered.json()["error"]["param"], param) << fields << answered.body;
  }
}

TEST(ResponseStore, never_holds_more_than_it_may_and_drops_the_oldest) {
  const Random random(7);
  ResponseStore store({.max_responses = 8, .max_bytes = 12000});
  std::vector<std::string> newest;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const std::string id = std::to_string(random.bits(3 * i) % 40);
    const std::uint64_t dice = random.bits(3 * i + 1) % 10;
    if (dice == 0) {
      EXPECT_EQ(store.erase(id), std::erase(newest, id) > 0);
    } else if (!store.find(id)) {
      const std::size_t size = random.bits(3 * i + 2) % 4000;
      store.begin(id, "{}", [] {});
      store.keep(id, {.body = std::string(size, 'x'), .messages = {{.content = "hi"}}});
      newest.push_back(id);
      EXPECT_TRUE(store.find(id));
      EXPECT_FALSE(store.cancel(id));
    }
    std::erase_if(newest, [&](const std::string& one) { return !store.find(one); });
    ASSERT_EQ(store.num_kept(), newest.size());
    ASSERT_EQ(store.check_integrity(), "");
  }
  store.keep("huge", {.body = std::string(20000, 'x')});
  EXPECT_FALSE(store.find("huge"));
  for (int i = 0; i < 9; ++i) store.keep("n" + std::to_string(i), {});
  EXPECT_FALSE(store.find("n0"));
  EXPECT_TRUE(store.find("n8"));
}

}  // namespace
}  // namespace gauntlet::server::inline openai
