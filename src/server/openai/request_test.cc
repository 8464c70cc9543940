// What clients may send: every field's type and range, and the patterns that took other servers
// down.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "server/openai/chat_request.h"

namespace gauntlet::server::inline openai {
namespace {

const RequestScope kScope{.model = "tiny", .vocab = 1000};

ApiResult<CompletionRequest> completion(const std::string& text) {
  const auto body = parse_body(text);
  if (!body) return body.error();
  return parse_completion(*body, kScope);
}

ApiResult<ChatRequest> chat(const std::string& text) {
  const auto body = parse_body(text);
  if (!body) return body.error();
  return parse_chat(*body, kScope);
}

/// The field at fault in a completion with this beside its prompt; empty when it is accepted.
std::string fault_of(const std::string& field) {
  const auto request = completion(R"({"prompt": "a", )" + field + "}");
  return request ? "" : request.error().param;
}
std::string chat_fault_of(const std::string& field) {
  const auto request = chat(R"({"messages": [{"role": "user", "content": "a"}], )" + field + "}");
  return request ? "" : request.error().param;
}

std::string repeated(const std::string& part, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += part;
  return text;
}

TEST(Body, is_refused_when_it_is_not_an_object) {
  for (const char* text :
       {"", "{", "[]", "3", "null", "{\"a\":NaN}", "{\"a\":1e999}", "{\"a\":\"\xff\"}", "{} {}"}) {
    const auto body = parse_body(text);
    ASSERT_FALSE(body) << text;
    EXPECT_EQ(body.error().status, 400);
    EXPECT_FALSE(body.error().message.empty());
  }
}

TEST(Body, is_refused_when_it_nests_too_deep_or_has_too_many_fields) {
  EXPECT_FALSE(parse_body("{\"a\":" + repeated("[", 100000)));
  EXPECT_FALSE(parse_body("{\"a\":" + repeated("{\"a\":", 100000)));
  EXPECT_FALSE(parse_body("{\"a\":" + repeated("[", 64) + repeated("]", 64) + "}"));
  EXPECT_TRUE(parse_body("{\"a\":" + repeated("[", 63) + repeated("]", 63) + "}"));
  EXPECT_TRUE(parse_body(R"({"a": "[[[[\"{{{{"})"));
  std::string wide = "{\"a\":0";
  for (int i = 0; i < 3000; ++i) wide += ",\"a" + std::to_string(i) + "\":0";
  EXPECT_FALSE(parse_body(wide + "}"));
}

TEST(Completion, takes_every_field) {
  const auto request = completion(R"({"model": "tiny", "prompt": [1, 2], "n": 3, "stream": true,
      "stream_options": {"include_usage": true}, "max_tokens": 7, "temperature": 0.5, "top_p": 0.9,
      "top_k": 40, "min_p": 0.1, "presence_penalty": -2, "frequency_penalty": 2,
      "repetition_penalty": 1.1, "logit_bias": {"5": -100, "6": 3.5}, "seed": -1, "stop": ["a", "b"],
      "stop_token_ids": [9], "logprobs": 5, "ignore_eos": true, "user": "me", "echo": false})");
  ASSERT_TRUE(request) << request.error().message;
  const GenerationParams& params = request->params;
  EXPECT_EQ(std::get<1>(request->prompts.at(0)), (std::vector<std::int32_t>{1, 2}));
  EXPECT_EQ(params.num_choices, 3);
  EXPECT_EQ(params.max_tokens, 7);
  EXPECT_EQ(params.delivery, Delivery::streamed);
  EXPECT_EQ(params.stream_usage, StreamUsage::included);
  EXPECT_FLOAT_EQ(params.sampling.temperature, 0.5f);
  EXPECT_EQ(params.sampling.top_k, 40);
  EXPECT_EQ(params.adjustments.bias.size(), 2u);
  EXPECT_EQ(params.seed, ~std::uint64_t{0});
  EXPECT_EQ(params.stops, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(params.top_log_probs, 5);
  EXPECT_EQ(params.end_of_sequence, engine::EndOfSequence::ignored);
}

TEST(Completion, takes_null_for_absent) {
  EXPECT_EQ(fault_of(R"("stop": null, "max_tokens": null, "logit_bias": null, "seed": null)"), "");
}

TEST(Completion, takes_what_clients_of_other_servers_send) {
  EXPECT_EQ(fault_of(R"("field_of_tomorrow": null, "store": true, "service_tier": "flex")"), "");
  const auto request = completion(R"({"prompt": "a", "min_tokens": 3, "echo": true,
      "skip_special_tokens": false, "guided_json": {"type": "string"}})");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->params.min_tokens, 3);
  EXPECT_EQ(request->echo, EchoPrompt::yes);
  EXPECT_EQ(request->special_tokens, SpecialText::shown);
  EXPECT_EQ(request->constraint->schema, R"({"type":"string"})");
  EXPECT_EQ(request->constraint->frame, OutputFrame::text);
}

TEST(Completion, names_the_field_that_is_wrong) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("temperature": -0.1)", "temperature"},
      {R"("temperature": 2.1)", "temperature"},
      {R"("temperature": "hot")", "temperature"},
      {R"("temperature": true)", "temperature"},
      {R"("top_p": 0)", "top_p"},
      {R"("top_p": 1e-60)", "top_p"},
      {R"("top_p": 1.5)", "top_p"},
      {R"("top_k": -2)", "top_k"},
      {R"("top_k": 1.5)", "top_k"},
      {R"("top_k": 99999999999)", "top_k"},
      {R"("min_p": -1)", "min_p"},
      {R"("presence_penalty": 3)", "presence_penalty"},
      {R"("repetition_penalty": 0)", "repetition_penalty"},
      {R"("n": 0)", "n"},
      {R"("n": 1000000000)", "n"},
      {R"("max_tokens": 0)", "max_tokens"},
      {R"("max_tokens": -5)", "max_tokens"},
      {R"("max_tokens": 18446744073709551615)", "max_tokens"},
      {R"("seed": 18446744073709551615)", "seed"},
      {R"("seed": "x")", "seed"},
      {R"("logprobs": 21)", "logprobs"},
      {R"("logprobs": true)", "logprobs"},
      {R"("stop": "")", "stop"},
      {R"("stop": [1])", "stop"},
      {R"("stop": {"a": 1})", "stop"},
      {R"("stop_token_ids": [1000])", "stop_token_ids"},
      {R"("stream": 1)", "stream"},
      {R"("stream_options": {"include_usage": true})", "stream_options"},
      {R"("stream": true, "stream_options": {"x": 1})", "stream_options.x"},
      {R"("logit_bias": {"x": 1})", "logit_bias"},
      {R"("logit_bias": {"1000": 1})", "logit_bias"},
      {R"("logit_bias": {"-1": 1})", "logit_bias"},
      {R"("logit_bias": {"1": 101})", "logit_bias"},
      {R"("logit_bias": {"1": "a"})", "logit_bias"},
      {R"("logit_bias": [1])", "logit_bias"},
      {R"("echo": true, "logprobs": 1)", "echo"},
      {R"("min_tokens": -1)", "min_tokens"},
      {R"("prompt_logprobs": 1)", "prompt_logprobs"},
      {R"("guided_regex": "a+")", "guided_regex"},
      {R"("guided_json": 3)", "guided_json"},
      {R"("structured_outputs": {"regex": "a+"})", "structured_outputs.regex"},
      {R"("guided_json": {}, "structured_outputs": {"json": {}})", "structured_outputs"},
      {R"("suffix": "x")", "suffix"},
      {R"("best_of": 4)", "best_of"},
      {R"("store": 1)", "store"},
      {R"("tempreature": 1)", "tempreature"},
  };
  for (const auto& [field, param] : cases) EXPECT_EQ(fault_of(field), param) << field;
}

TEST(Completion, suggests_the_field_that_was_meant) {
  const auto request = completion(R"({"prompt": "a", "tempreature": 1})");
  ASSERT_FALSE(request);
  EXPECT_NE(request.error().message.find("'temperature'"), std::string::npos);
  EXPECT_EQ(request.error().code, "unknown_parameter");
}

TEST(Completion, refuses_prompts_that_are_not_text_or_ids) {
  for (const char* prompt : {"3", "{}", "[]", "[1, \"a\"]", "[\"a\", 1]", "[[1], 2]", "[-1]",
                             "[1000]", "[1.5]", "[[-1]]", "[null]"}) {
    const auto request = completion(std::string(R"({"prompt": )") + prompt + "}");
    ASSERT_FALSE(request) << prompt;
    EXPECT_EQ(request.error().param, "prompt");
  }
  EXPECT_FALSE(completion("{}"));
  EXPECT_FALSE(completion(R"({"prompt": [)" + repeated("\"a\",", 200) + "\"a\"]}"));
}

TEST(Completion, says_404_for_another_model) {
  const auto request = completion(R"({"prompt": "a", "model": "other"})");
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().status, 404);
  EXPECT_EQ(request.error().code, "model_not_found");
}

TEST(CvePatterns, cve_2026_21869_negative_counts_are_refused_everywhere) {
  for (const char* name : {"n", "max_tokens", "logprobs", "best_of", "top_p", "temperature"}) {
    EXPECT_EQ(fault_of('"' + std::string(name) + "\": -1"), name);
    EXPECT_EQ(fault_of('"' + std::string(name) + "\": -9223372036854775808"), name);
  }
  EXPECT_EQ(fault_of(R"("n_discard": -1)"), "n_discard");
  EXPECT_FALSE(completion(R"({"prompt": [-2147483648]})"));
}

TEST(CvePatterns, cve_2026_44223_sampling_parameters_never_reach_the_engine_unchecked) {
  for (const char* value : {"-1", "1e308", "-1e308", "\"NaN\"", "[]", "{}", "\"\"", "3e38"}) {
    for (const char* name : {"temperature", "top_p", "min_p", "presence_penalty",
                             "frequency_penalty", "repetition_penalty"}) {
      const std::string field = '"' + std::string(name) + "\": " + value;
      const auto request = completion(R"({"prompt": "a", )" + field + "}");
      if (request) {
        EXPECT_TRUE(engine::validate(request->params.sampling)) << field;
        EXPECT_TRUE(engine::validate(request->params.adjustments, kScope.vocab)) << field;
      } else {
        EXPECT_EQ(request.error().param, name);
      }
    }
  }
}

TEST(Chat, takes_messages_tools_and_effort) {
  const auto request = chat(R"({"messages": [
      {"role": "system", "content": "Be kind."},
      {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
      {"role": "assistant", "content": null, "reasoning_content": "hm",
       "tool_calls": [{"id": "c1", "type": "function",
                       "function": {"name": "f", "arguments": "{}"}}]},
      {"role": "tool", "tool_call_id": "c1", "content": "42"}],
      "tools": [{"type": "function", "function": {"name": "f", "description": "d",
                 "parameters": {"type": "object", "properties": {"z": {}, "a": {}}}}}],
      "reasoning_effort": "high", "max_completion_tokens": 5, "logprobs": true,
      "top_logprobs": 2})");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->messages.at(1).content, "ab");
  EXPECT_EQ(request->messages.at(2).tool_calls.at(0).name, "f");
  EXPECT_EQ(request->tools.at(0).parameters, R"({"type":"object","properties":{"z":{},"a":{}}})");
  EXPECT_EQ(request->effort, model::ReasoningEffort::high);
  EXPECT_EQ(request->params.max_tokens, 5);
  EXPECT_EQ(request->params.top_log_probs, 2);
}

TEST(Chat, takes_an_answer_back_as_it_came) {
  const auto request = chat(R"({"messages": [{"role": "user", "content": "a"},
      {"role": "assistant", "content": null, "refusal": null, "annotations": [], "audio": null,
       "function_call": null, "reasoning": "hm", "tool_calls": [{"index": 0, "id": "c1",
       "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
      {"role": "tool", "tool_call_id": "c1", "content": "42", "name": null, "x": null}]})");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->messages.at(1).reasoning, "hm");
  EXPECT_EQ(request->messages.at(1).tool_calls.at(0).id, "c1");
}

TEST(Chat, takes_every_word_for_an_effort) {
  using model::ReasoningEffort;
  const std::pair<const char*, ReasoningEffort> cases[] = {
      {"none", ReasoningEffort::low},  {"minimal", ReasoningEffort::low},
      {"low", ReasoningEffort::low},   {"medium", ReasoningEffort::medium},
      {"high", ReasoningEffort::high}, {"xhigh", ReasoningEffort::high}};
  for (const auto& [word, effort] : cases) {
    const std::string said = std::string(R"("reasoning_effort": ")") + word + "\"";
    const std::string message = R"({"messages": [{"role": "user", "content": "a"}], )";
    EXPECT_EQ(chat(message + said + "}")->effort, effort) << word;
    EXPECT_EQ(chat(message + R"("chat_template_kwargs": {)" + said + "}}")->effort, effort) << word;
  }
}

TEST(Chat, is_shown_only_the_tools_that_are_allowed) {
  const std::string tools = R"({"messages": [{"role": "user", "content": "a"}], "tools": [
      {"type": "function", "function": {"name": "f"}},
      {"type": "function", "function": {"name": "g"}}], "tool_choice": {"type": "allowed_tools",
      "allowed_tools": {"tools": [{"type": "function", "function": {"name": "g"}}], "mode": )";
  const auto free = chat(tools + R"("auto"}}})");
  ASSERT_TRUE(free) << free.error().message;
  ASSERT_EQ(free->tools.size(), 1u);
  EXPECT_EQ(free->tools[0].name, "g");
  EXPECT_FALSE(free->constraint);
  const auto required = chat(tools + R"("required"}}})");
  ASSERT_TRUE(required);
  EXPECT_EQ(required->constraint->functions.at(0).name, "g");
  const auto unknown = chat(tools + R"("sometimes"}}})");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().param, "tool_choice.allowed_tools.mode");
}

TEST(Chat, names_the_field_that_is_wrong) {
  const std::string tool = R"("tools": [{"type": "function", "function": {"name": "f"}}])";
  const std::pair<std::string, const char*> cases[] = {
      {R"("reasoning_effort": "huge")", "reasoning_effort"},
      {R"("top_logprobs": 2)", "top_logprobs"},
      {R"("max_tokens": 1, "max_completion_tokens": 2)", "max_tokens"},
      {R"("tool_choice": "auto")", "tool_choice"},
      {tool + R"(, "tool_choice": "never")", "tool_choice"},
      {tool + R"(, "tool_choice": {"type": "function", "function": {"name": "g"}})", "tool_choice"},
      {R"("tools": [{"type": "code"}])", "tools[0].type"},
      {R"("tools": [{"type": "function", "function": {"name": "<|end|>"}}])",
       "tools[0].function.name"},
      {R"("tools": [{"type": "function", "function": {"name": "f", "parameters": 3}}])",
       "tools[0].function.parameters"},
      {R"("response_format": {"type": "xml"})", "response_format.type"},
      {R"("response_format": {"type": "json_schema"})", "response_format.json_schema"},
      {R"("functions": [])", "functions"},
      {R"("skip_special_tokens": false)", "skip_special_tokens"},
      {R"("chat_template_kwargs": {"x": 1})", "chat_template_kwargs.x"},
  };
  for (const auto& [field, param] : cases) EXPECT_EQ(chat_fault_of(field), param) << field;
}

TEST(Chat, refuses_messages_of_a_wrong_shape) {
  const std::pair<const char*, const char*> cases[] = {
      {"[]", "messages"},
      {"\"a\"", "messages"},
      {"[3]", "messages[0]"},
      {R"([{"content": "a"}])", "messages[0].role"},
      {R"([{"role": "king", "content": "a"}])", "messages[0].role"},
      {R"([{"role": "user"}])", "messages[0].content"},
      {R"([{"role": "user", "content": 3}])", "messages[0].content"},
      {R"([{"role": "user", "content": [{"type": "image_url"}]}])", "messages[0].content[0].type"},
      {R"([{"role": "user", "content": "a", "name": "a b"}])", "messages[0].name"},
      {R"([{"role": "tool", "content": "a"}])", "messages[0].tool_call_id"},
      {R"([{"role": "user", "content": "a", "x": 1}])", "messages[0].x"},
  };
  for (const auto& [messages, param] : cases) {
    const auto request = chat(std::string(R"({"messages": )") + messages + "}");
    ASSERT_FALSE(request) << messages;
    EXPECT_EQ(request.error().param, param) << messages;
  }
}

TEST(Chat, keeps_what_an_answer_must_look_like_for_who_can_enforce_it) {
  const auto schema = chat(R"({"messages": [{"role": "user", "content": "a"}], "response_format":
      {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "string"}}}})");
  ASSERT_TRUE(schema) << schema.error().message;
  EXPECT_EQ(schema->constraint->form, OutputForm::json_schema);
  EXPECT_EQ(schema->constraint->schema, R"({"type":"string"})");
  const auto text = chat(R"({"messages": [{"role": "user", "content": "a"}],
      "response_format": {"type": "text"}})");
  ASSERT_TRUE(text);
  EXPECT_FALSE(text->constraint);
}

}  // namespace
}  // namespace gauntlet::server::inline openai
