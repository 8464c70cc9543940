// The endpoints over an engine that says what a test wants, stepped by the test.
#include "server/openai/api.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/steps/fake_executor.h"
#include "engine/tiny_tokenizer.h"
#include "server/openai/generate/answered.h"

namespace gauntlet::server::inline openai {
namespace {

using ::testing::HasSubstr;

class ApiTest : public ::testing::Test {
 protected:
  ApiTest() {
    executor_.next = [this](const engine::FakeExecutor::History& history) {
      const std::size_t at = history.size() - prompt_size_;
      return at < script_.size() ? script_[at] : tiny_special("<|return|>");
    };
  }

  static engine::FakeExecutor::History encode(const std::string& text) {
    return engine::tiny_tokenizer().encode(text, model::SpecialTokens::as_special);
  }

  static ApiKeys keys(const std::string& lines) { return ApiKeys::parse(lines, "keys").value(); }
  std::shared_ptr<Reply> send(const std::string& method, const std::string& target,
                              const std::string& body = "") {
    return api_.handle({.id = "r1", .method = method, .target = target, .body = body});
  }
  Answered read(Reply& reply) { return read_answer(reply, service_); }
  Answered ask(const std::string& method, const std::string& target, const std::string& body = "") {
    return read(*send(method, target, body));
  }
  /// The model will say this, special tokens spelled, after a prompt of ids [1, 2].
  void script(const std::string& text, std::size_t prompt_size = 2) {
    script_ = encode(text);
    prompt_size_ = prompt_size;
  }
  Answered chat(const std::string& said, const std::string& fields = "") {
    const std::string messages = R"("messages": [{"role": "user", "content": "hi"}])";
    const auto tokens = ask("POST", "/tokenize", "{" + messages + "}").json();
    script(said, tokens.at("count").get<std::size_t>());
    return ask("POST", "/v1/chat/completions",
               "{" + messages + R"(, "temperature": 0)" + fields + "}");
  }

  engine::FakeExecutor executor_{tiny_config(), 512};
  engine::Service service_{executor_, {}};
  ServerMetrics metrics_;
  Api api_{{.model = {.name = "tiny", .vocab = tiny_config().vocab}},
           service_,
           engine::tiny_tokenizer(),
           metrics_};
  engine::FakeExecutor::History script_;
  std::size_t prompt_size_ = 2;
};

TEST_F(ApiTest, completes_a_prompt) {
  script("hello world");
  const Answered whole =
      ask("POST", "/v1/completions", R"({"prompt": [1, 2], "temperature": 0, "max_tokens": 50})");
  EXPECT_EQ(whole.status, 200);
  const Json json = whole.json();
  EXPECT_EQ(json["choices"][0]["text"], "hello world");
  EXPECT_EQ(json["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(json["usage"]["prompt_tokens"], 2);
  EXPECT_EQ(json["usage"]["completion_tokens"], script_.size() + 1);
}

TEST_F(ApiTest, streams_a_completion_with_usage) {
  script("hello world");
  const Answered stream =
      ask("POST", "/v1/completions",
          R"({"prompt": [1, 2], "temperature": 0, "stream": true, "max_tokens": 2,
              "stream_options": {"include_usage": true}})");
  EXPECT_EQ(stream.status, 200);
  EXPECT_TRUE(stream.body.starts_with("data: {"));
  EXPECT_TRUE(stream.body.ends_with("data: [DONE]\n\n"));
  EXPECT_THAT(stream.body, HasSubstr(R"("finish_reason":"length")"));
  EXPECT_THAT(stream.body, HasSubstr(R"("completion_tokens":2)"));
}

TEST_F(ApiTest, stops_at_a_string_across_tokens) {
  script("one two three four");
  const Answered whole =
      ask("POST", "/v1/completions",
          R"({"prompt": [1, 2], "temperature": 0, "max_tokens": 50, "stop": "o three"})");
  EXPECT_EQ(whole.json()["choices"][0]["text"], "one tw");
  EXPECT_EQ(whole.json()["choices"][0]["finish_reason"], "stop");
}

TEST_F(ApiTest, goes_on_until_it_has_as_many_tokens_as_it_must) {
  script("");
  const auto tokens = [&](const std::string& fields) {
    return ask("POST", "/v1/completions",
               R"({"prompt": [1, 2], "max_tokens": 9, "temperature": 0)" + fields + "}")
        .json()["usage"]["completion_tokens"]
        .get<int>();
  };
  EXPECT_EQ(tokens(""), 1);
  EXPECT_GE(tokens(R"(, "min_tokens": 5)"), 5);
  EXPECT_EQ(
      ask("POST", "/v1/completions", R"({"prompt": [1, 2], "max_tokens": 3, "min_tokens": 4})")
          .json()["error"]["param"],
      "min_tokens");
}

TEST_F(ApiTest, says_the_prompt_again_and_shows_special_tokens_where_asked_to) {
  const Json tokens = ask("POST", "/tokenize", R"({"prompt": "say"})").json();
  script("hello<|end|>", tokens["count"]);
  const std::string body = R"({"prompt": "say", "temperature": 0, "max_tokens": 50)";
  const Json json =
      ask("POST", "/v1/completions", body + R"(, "echo": true, "skip_special_tokens": false})")
          .json();
  EXPECT_THAT(json["choices"][0]["text"].get<std::string>(),
              ::testing::StartsWith("sayhello<|end|>"));
  const Answered stream =
      ask("POST", "/v1/completions", body + R"(, "echo": true, "stream": true})");
  EXPECT_THAT(stream.body, HasSubstr(R"("text":"say)"));
}

TEST_F(ApiTest, chats_with_reasoning_apart) {
  const Json json = chat(
                        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant"
                        "<|channel|>final<|message|>hello")
                        .json();
  EXPECT_EQ(json["choices"][0]["message"]["content"], "hello");
  EXPECT_EQ(json["choices"][0]["message"]["reasoning_content"], "hm");
  EXPECT_EQ(json["choices"][0]["finish_reason"], "stop");
}

TEST_F(ApiTest, chats_with_a_model_that_writes_no_harmony) {
  const Answered answered = chat("just text");
  EXPECT_EQ(answered.status, 200);
  EXPECT_THAT(answered.body, HasSubstr("just text"));
}

TEST_F(ApiTest, hands_out_tool_calls) {
  const std::string said = R"(<|channel|>commentary to=functions.f <|constrain|>json)"
                           R"(<|message|>{"a":1}<|call|>)";
  const Json json = chat(said).json();
  const Json& call = json["choices"][0]["message"]["tool_calls"][0];
  EXPECT_EQ(call["function"]["name"], "f");
  EXPECT_EQ(call["function"]["arguments"], R"({"a":1})");
  EXPECT_EQ(json["choices"][0]["finish_reason"], "tool_calls");
  EXPECT_THAT(chat(said, R"(, "stream": true)").body, HasSubstr(R"("name":"f")"));
}

TEST_F(ApiTest, refuses_a_form_it_cannot_enforce) {
  const Answered answered = chat("a", R"(, "response_format": {"type": "json_object"})");
  EXPECT_EQ(answered.status, 400);
  EXPECT_EQ(answered.json()["error"]["param"], "response_format");
}

TEST_F(ApiTest, says_the_numbers_of_a_prompt_that_is_too_long) {
  std::string ids = "1";
  for (int i = 0; i < 2500; ++i) ids += ",1";
  const Answered answered = ask("POST", "/v1/completions", R"({"prompt": [)" + ids + "]}");
  EXPECT_EQ(answered.status, 400);
  EXPECT_EQ(answered.json()["error"]["code"], "context_length_exceeded");
  EXPECT_THAT(answered.body, HasSubstr("2501"));
  EXPECT_THAT(answered.body, HasSubstr("2000"));
}

TEST_F(ApiTest, ends_a_reader_whose_socket_is_full_and_nobody_else) {
  Api tight({.model = {.name = "tiny", .vocab = tiny_config().vocab}, .max_pending = 4}, service_,
            engine::tiny_tokenizer(), metrics_);
  script("a b c d e f g h i j k l m n o p");
  const std::string body =
      R"({"prompt": [1, 2], "temperature": 0, "max_tokens": 16, "stream": true})";
  const auto ask_tight = [&](const char* id) {
    return tight.handle({.id = id, .method = "POST", .target = "/v1/completions", .body = body});
  };
  const auto full = ask_tight("full");
  const auto unheard = ask_tight("unheard");  // nobody had the time to read it
  const auto fast = send("POST", "/v1/completions", body);
  for (int i = 0; i < 20; ++i) service_.step();
  full->reader_is_blocked();
  fast->reader_is_blocked();
  EXPECT_EQ(read(*full).status, 503);
  EXPECT_THAT(read(*unheard).body, testing::EndsWith("data: [DONE]\n\n"));
  EXPECT_EQ(read(*fast).status, 200) << "fewer wait than may";
  EXPECT_EQ(service_.stats().num_running, 0);
}

TEST_F(ApiTest, frees_an_abandoned_request_at_the_next_step) {
  script(std::string(200, 'a'));
  const auto reply = send("POST", "/v1/completions", R"({"prompt": [1, 2], "max_tokens": 500})");
  service_.step();
  EXPECT_EQ(service_.stats().num_running, 1);
  reply->abandon();
  service_.step();
  EXPECT_EQ(service_.stats().num_running, 0);
  EXPECT_EQ(service_.stats().kv_usage, 0);
}

TEST_F(ApiTest, cve_2026_44223_no_sampling_parameter_ends_the_engine) {
  script("hello");
  std::string stops = R"("a0")";
  for (int i = 1; i < 16; ++i) stops += fmt::format(R"(,"a{}")", i);
  std::string bans = R"("0":-100)";
  for (int i = 1; i < 1024; ++i) bans += fmt::format(R"(,"{}":-100)", i);
  for (const std::string& fields : std::vector<std::string>{
           R"("temperature": 2)", R"("temperature": 1e-45)", R"("top_p": 1e-37)",
           R"("min_p": 1, "temperature": 2)", R"("top_k": 2147483647)",
           R"("top_k": -1, "top_p": 1e-30, "min_p": 1)",
           R"("repetition_penalty": 0.01, "presence_penalty": -2, "frequency_penalty": 2)",
           R"("repetition_penalty": 10, "logprobs": 20)", R"("logit_bias": {)" + bans + "}",
           R"("seed": -9223372036854775808, "n": 128)",
           R"("stop_token_ids": [0, 1, 2], "stop": [)" + stops + "]"}) {
    const Answered answered =
        ask("POST", "/v1/completions", R"({"prompt": [1, 2], "max_tokens": 3, )" + fields + "}");
    EXPECT_EQ(answered.status, 200) << fields << answered.body;
    EXPECT_EQ(service_.check_integrity(), "");
  }
  EXPECT_EQ(ask("POST", "/v1/completions", R"({"prompt": [1, 2], "temperature": 0})")
                .json()["choices"][0]["text"],
            "hello");
  EXPECT_EQ(service_.stats().kv_usage, 0);
}

TEST_F(ApiTest, lets_many_choices_of_one_stream_wait_for_their_reader) {
  Api tight({.model = {.name = "tiny", .vocab = tiny_config().vocab}, .max_pending = 8}, service_,
            engine::tiny_tokenizer(), metrics_);
  script("a b c d e f g h");
  const auto reply = tight.handle({.id = "many",
                                   .method = "POST",
                                   .target = "/v1/completions",
                                   .body = R"({"prompt": [1, 2], "temperature": 0, "n": 16,
                                               "max_tokens": 6, "stream": true})"});
  for (int i = 0; i < 20; ++i) service_.step();
  EXPECT_EQ(read(*reply).status, 200);
}

TEST_F(ApiTest, wakes_the_reader_of_a_whole_answer_at_its_end) {
  script("a b c d e f g h");
  const auto reply =
      send("POST", "/v1/completions", R"({"prompt": [1, 2], "temperature": 0, "max_tokens": 8})");
  int num_wakes = 0;
  reply->on_ready([&] { ++num_wakes; });
  for (int i = 0; i < 7; ++i) service_.step();
  EXPECT_EQ(num_wakes, 0);
  for (int i = 0; i < 3; ++i) service_.step();
  EXPECT_EQ(num_wakes, 1);
  EXPECT_EQ(read(*reply).status, 200);
}

TEST_F(ApiTest, bounds_what_it_lists) {
  const std::string text(1 << 20, '~');
  const Answered tokens = ask("POST", "/tokenize", R"({"prompt": ")" + text + R"("})");
  EXPECT_EQ(tokens.status, 400) << tokens.body.substr(0, 200);
  std::string ids = "1";
  for (int i = 0; i < 300000; ++i) ids += ",1";
  EXPECT_EQ(ask("POST", "/detokenize", R"({"tokens": [)" + ids + "]}").status, 400);
  const std::string name(100000, 'x');
  EXPECT_LT(ask("POST", "/tokenize", R"({")" + name + R"(": 1})").body.size(), 1000u);
}

TEST_F(ApiTest, takes_no_work_while_draining) {
  api_.set_state(Api::State::draining);
  EXPECT_EQ(ask("POST", "/v1/completions", R"({"prompt": "a"})").status, 503);
  EXPECT_EQ(ask("GET", "/ready").status, 503);
  EXPECT_EQ(ask("GET", "/health").status, 200);
}

TEST_F(ApiTest, asks_for_the_key_where_there_is_one) {
  const KeyRing ring(keys("default secret"));
  Api guarded({.model = {.name = "tiny", .vocab = tiny_config().vocab}, .keys = &ring}, service_,
              engine::tiny_tokenizer(), metrics_);
  const auto status = [&](const std::string& authorization, const std::string& target) {
    const auto reply =
        guarded.handle({.method = "GET", .target = target, .authorization = authorization});
    return reply->take()->head->status;
  };
  EXPECT_EQ(status("", "/v1/models"), 401);
  EXPECT_EQ(status("Bearer ", "/v1/models"), 401);
  EXPECT_EQ(status("Bearer secre", "/v1/models"), 401);
  EXPECT_EQ(status("Bearer secretsecret", "/v1/models"), 401);
  EXPECT_EQ(status("Bearer secret", "/v1/models"), 200);
  EXPECT_EQ(status("", "/health"), 200);
  EXPECT_EQ(status("", "/"), 200) << "the page asks for the key itself";
  EXPECT_EQ(status("", "/metrics"), 401);
}

TEST_F(ApiTest, takes_the_scheme_of_a_key_in_any_letters) {
  const KeyRing ring(keys("default secret"));
  Api guarded({.model = {.name = "tiny", .vocab = tiny_config().vocab}, .keys = &ring}, service_,
              engine::tiny_tokenizer(), metrics_);
  for (const char* authorization : {"bearer secret", "BEARER secret", "Bearer   secret"}) {
    const HttpRequest head{.method = "GET", .target = "/v1/models", .authorization = authorization};
    EXPECT_EQ(guarded.admit(head).refusal, nullptr) << authorization;
  }
  for (const char* authorization : {"Bearersecret", "Basic secret", "secret", "Bearer SECRET"}) {
    const HttpRequest head{.method = "GET", .target = "/v1/models", .authorization = authorization};
    EXPECT_EQ(guarded.admit(head).refusal->take()->head->status, 401) << authorization;
  }
}

TEST_F(ApiTest, refuses_by_path_key_and_method_before_a_body) {
  const KeyRing ring(keys("default secret"));
  Api guarded({.model = {.name = "tiny", .vocab = tiny_config().vocab}, .keys = &ring}, service_,
              engine::tiny_tokenizer(), metrics_);
  const auto status = [&](const char* method, const char* target, const char* key) {
    const auto refused =
        guarded.admit({.method = method, .target = target, .authorization = key}).refusal;
    return refused ? refused->take()->head->status : 0;
  };
  EXPECT_EQ(status("POST", "/v1/completions", "Bearer secret"), 0);
  EXPECT_EQ(status("POST", "/v1/completions", "Bearer wrong"), 401);
  EXPECT_EQ(status("PUT", "/v1/completions", "Bearer secret"), 405);
  EXPECT_EQ(status("PUT", "/v1/responses/resp_1", "Bearer secret"), 405);
  EXPECT_EQ(status("DELETE", "/v1/responses/resp_1/cancel", "Bearer secret"), 405);
  EXPECT_EQ(status("POST", "/v1/responses/resp_1/nothing", "Bearer secret"), 404);
  EXPECT_EQ(status("POST", "/nowhere", "Bearer secret"), 404);
  EXPECT_EQ(status("POST", "/v1/%zz", "Bearer secret"), 400);
  EXPECT_EQ(status("POST", "/health", ""), 405);
}

TEST_F(ApiTest, knows_paths_and_models_by_any_spelling_of_theirs) {
  Api slashed({.model = {.name = "openai/gpt-oss-20b", .vocab = tiny_config().vocab}}, service_,
              engine::tiny_tokenizer(), metrics_);
  const auto status = [&](const std::string& target) {
    return slashed.handle({.method = "GET", .target = target})->take()->head->status;
  };
  EXPECT_EQ(status("/v1/models/openai%2Fgpt-oss-20b"), 200);
  EXPECT_EQ(status("/v1/models/openai%2fgpt-oss-20b?a=b"), 200);
  EXPECT_EQ(status("/v1/models/openai/gpt-oss-20b"), 200);
  EXPECT_EQ(status("/v1/models/gpt-oss-20b"), 404);
  EXPECT_EQ(status("/%68ealth"), 200);
}

TEST_F(ApiTest, answers_who_asks_for_the_head_alone) {
  for (const char* target : {"/health", "/v1/models", "/metrics", "/"}) {
    EXPECT_EQ(ask("HEAD", target).status, 200) << target;
  }
  EXPECT_EQ(ask("HEAD", "/v1/completions").status, 405);
}

TEST_F(ApiTest, refuses_more_answers_than_can_ever_wait) {
  const auto ask_for = [&](int num_prompts, int num_choices) {
    std::string prompts = "[1]";
    for (int i = 1; i < num_prompts; ++i) prompts += ",[1]";
    return ask(
        "POST", "/v1/completions",
        fmt::format(R"({{"prompt": [{}], "n": {}, "max_tokens": 1}})", prompts, num_choices));
  };
  const Answered answered = ask_for(128, 128);
  EXPECT_EQ(answered.status, 400) << answered.body;
  EXPECT_THAT(answered.body, HasSubstr("16384"));
  EXPECT_EQ(answered.json()["error"]["param"], "n");
  EXPECT_EQ(service_.stats().num_waiting, 0) << "none of them was taken";
}

TEST_F(ApiTest, bounds_the_size_of_a_whole_answer) {
  const std::string fields =
      R"("prompt": [1, 2], "temperature": 0, "n": 128, "max_tokens": 1500, "logprobs": 20)";
  const Answered whole = ask("POST", "/v1/completions", "{" + fields + "}");
  EXPECT_EQ(whole.status, 400);
  EXPECT_EQ(whole.json()["error"]["param"], "max_tokens");
  for (const char* number : {"128", "1500", "21", "4032000", "1048576"}) {
    EXPECT_THAT(whole.body, HasSubstr(number));
  }
  script("a");
  EXPECT_EQ(ask("POST", "/v1/completions", "{" + fields + R"(, "stream": true})").status, 200)
      << "a stream never holds it all";
}

TEST_F(ApiTest, hands_out_a_large_answer_in_parts) {
  std::string said;
  for (int i = 0; i < 400; ++i) said += "word ";
  script(said);
  const auto reply = send("POST", "/v1/completions",
                          R"({"prompt": [1, 2], "temperature": 0, "n": 16, "max_tokens": 300,
                              "ignore_eos": true, "logprobs": 20})");
  while (service_.step()) {
  }
  std::string body;
  int num_parts = 0;
  for (bool is_last = false; !is_last;) {
    const auto piece = reply->take();
    if (!piece) continue;  // what the engine made is written in portions
    EXPECT_EQ(piece->head.has_value(), num_parts == 0);
    EXPECT_LE(piece->body.size(), std::size_t{256} << 10);
    body += piece->body;
    is_last = piece->is_last;
    ++num_parts;
  }
  EXPECT_GT(num_parts, 2);
  const Json json = Json::parse(body);
  ASSERT_EQ(json["choices"].size(), 16u);
  for (const Json& choice : json["choices"]) {
    EXPECT_EQ(choice["logprobs"]["tokens"].size(), 300u);
    EXPECT_EQ(choice["logprobs"]["top_logprobs"].size(), 300u);
  }
  EXPECT_EQ(json["usage"]["completion_tokens"], 16 * 300);
}

TEST_F(ApiTest, quotes_little_of_what_it_refuses) {
  const std::string x(100000, 'x');
  const std::string chat = R"({"messages": [{"role": "user", "content": "a"}], )";
  const std::vector<std::pair<std::string, std::string>> hostile = {
      {"/v1/completions", R"({"prompt": ")" + x},
      {"/v1/completions", R"({"prompt": )" + x},
      {"/v1/completions", R"({")" + x + R"(": 1})"},
      {"/v1/completions", R"({"prompt": "a", "model": ")" + x + R"("})"},
      {"/v1/completions", R"({"prompt": "a", "logit_bias": {")" + x + R"(": 1}})"},
      {"/v1/completions", R"({"prompt": "a", "stop": ")" + x + R"("})"},
      {"/v1/completions", R"({"prompt": "a", "stream_options": {")" + x + R"(": 1}})"},
      {"/v1/chat/completions", R"({"messages": [{"role": ")" + x + R"(", "content": "a"}]})"},
      {"/v1/chat/completions", R"({"messages": [{")" + x + R"(": 1}]})"},
      {"/v1/chat/completions", chat + R"("reasoning_effort": ")" + x + R"("})"},
      {"/v1/chat/completions", chat + R"("tool_choice": ")" + x + R"("})"},
      {"/v1/chat/completions",
       chat + R"("tool_choice": {"type": "function", "function": {"name": ")" + x + R"("}}})"},
      {"/v1/chat/completions",
       chat + R"("tools": [{"type": "function", "function": {"name": ")" + x + R"("}}]})"},
      {"/v1/chat/completions", chat + R"("response_format": {"type": ")" + x + R"("}})"},
      {"/tokenize", R"({")" + x + R"(": "a"})"},
      {"/v1/models/" + x, ""},
      {"/v1/responses/" + x, ""},
      {"/v1/responses/" + x, "{}"},
      {"/" + x, ""}};
  for (const auto& [target, body] : hostile) {
    const Answered answered = ask(body.empty() ? "GET" : "POST", target, body);
    EXPECT_GE(answered.status, 400) << target;
    EXPECT_EQ(answered.body.find(std::string(201, 'x')), std::string::npos)
        << target << " " << body.substr(0, 80);
    EXPECT_LT(answered.body.size(), 1200u);
  }
}

TEST_F(ApiTest, answers_the_small_endpoints) {
  EXPECT_EQ(ask("GET", "/v1/models").json()["data"][0]["id"], "tiny");
  EXPECT_EQ(ask("GET", "/v1/models/tiny").status, 200);
  EXPECT_EQ(ask("GET", "/v1/models/other").status, 404);
  EXPECT_EQ(ask("GET", "/nowhere").status, 404);
  EXPECT_EQ(ask("GET", "/v1/completions").status, 405);
  EXPECT_THAT(ask("POST", "/v1/embeddings", R"({"input": "a"})").body, HasSubstr("embeddings"));
  EXPECT_EQ(ask("GET", "/version").status, 200);
  EXPECT_THAT(ask("GET", "/?from=there").body, HasSubstr("<title>"));
  EXPECT_EQ(ask("POST", "/chat.js").status, 405);
  const Json tokens = ask("POST", "/tokenize", R"({"prompt": "hello world"})").json();
  EXPECT_EQ(ask("POST", "/detokenize", Json{{"tokens", tokens["tokens"]}}.dump()).json()["prompt"],
            "hello world");
  const std::string metrics = ask("GET", "/metrics").body;
  EXPECT_THAT(metrics,
              HasSubstr("gauntlet:num_requests_running{model_name=\"tiny\",engine=\"0\"} 0"));
  EXPECT_THAT(metrics, HasSubstr("gauntlet:time_to_first_token_seconds_bucket{"));
  EXPECT_THAT(metrics, HasSubstr("process_resident_memory_bytes "));
}

}  // namespace
}  // namespace gauntlet::server::inline openai
