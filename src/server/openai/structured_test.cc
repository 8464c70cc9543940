// Answers of a required form, from a model that never learned to give one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "engine/golden.h"
#include "engine/tiny_tokenizer.h"
#include "server/openai/api.h"
#include "server/structured/grammar_constraints.h"

namespace gauntlet::server::inline openai {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr const char* kPerson = R"({"type": "object", "properties": {
    "name": {"type": "string", "minLength": 1, "maxLength": 12},
    "age": {"type": "integer", "minimum": 0, "maximum": 150},
    "tags": {"type": "array", "items": {"enum": ["a", "bc"]}, "maxItems": 3}},
    "required": ["name", "age", "tags"], "additionalProperties": false})";
constexpr const char* kTools = R"([
    {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object",
      "properties": {"city": {"type": "string", "maxLength": 8},
                     "unit": {"enum": ["celsius", "fahrenheit"]}}, "required": ["city", "unit"]}}},
    {"type": "function", "function": {"name": "get_time"}}])";

void expect_person(const Json& person) {
  ASSERT_TRUE(person.is_object()) << person;
  EXPECT_EQ(person.size(), 3u);
  EXPECT_TRUE(person["name"].is_string());
  EXPECT_TRUE(person["age"].is_number_integer());
  EXPECT_LE(person["age"], 150);
  EXPECT_LE(person["tags"].size(), 3u);
  for (const Json& tag : person["tags"]) EXPECT_THAT(tag, AnyOf("a", "bc"));
}

class StructuredTest : public ::testing::Test {
 protected:
  struct Answered {
    int status = 0;
    std::string body;
    Json json() const { return Json::parse(body); }
    Json choice(std::size_t i = 0) const { return json().at("choices").at(i); }
  };

  Answered ask(const std::string& target, const Json& body) {
    const auto reply =
        api_.handle({.id = "r1", .method = "POST", .target = target, .body = body.dump()});
    Answered answered;
    for (int i = 0; i < 10000; ++i) {
      while (auto piece = reply->take()) {
        if (piece->head) answered.status = piece->head->status;
        answered.body += piece->body;
        if (piece->is_last) return answered;
      }
      service_.step();
    }
    ADD_FAILURE() << "the reply never ended";
    return answered;
  }
  /// With these fields beside a message.
  Answered chat(const std::string& fields) {
    Json body = Json::parse("{" + fields + "}");
    body["messages"] = Json::parse(R"([{"role": "user", "content": "Tell me about a cat."}])");
    return ask("/v1/chat/completions", body);
  }
  static std::string schema_format(const std::string& schema) {
    return R"("response_format": {"type": "json_schema", "json_schema": {"name": "it", "schema": )" +
           schema + "}}";
  }

  model::ModelWeights weights_ = engine::golden_model("gauntlet-tiny");
  std::unique_ptr<engine::Executor> executor_ = engine::executor_for(weights_, {.threads = 1});
  engine::Service service_{*executor_, {}};
  ServerMetrics metrics_;
  GrammarConstraints constraints_{engine::tiny_tokenizer(), executor_->config()};
  Api api_{
      {.model = {.name = "tiny", .vocab = executor_->config().vocab}, .constraints = &constraints_},
      service_,
      engine::tiny_tokenizer(),
      metrics_};
};

TEST_F(StructuredTest, a_chat_satisfies_its_schema) {
  for (int seed = 0; seed < 3; ++seed) {
    const Answered answered =
        chat(schema_format(kPerson) + R"(, "max_tokens": 400, "seed": )" + std::to_string(seed));
    ASSERT_EQ(answered.status, 200) << answered.body;
    const Json choice = answered.choice();
    EXPECT_EQ(choice["finish_reason"], "stop");
    expect_person(Json::parse(choice["message"]["content"].get<std::string>()));
    EXPECT_FALSE(choice["message"].contains("reasoning_content"));
  }
  EXPECT_EQ(constraints_.num_kept(), 1u);
}

TEST_F(StructuredTest, a_chat_gives_an_object_of_any_kind) {
  const Answered answered =
      chat(R"("response_format": {"type": "json_object"}, "max_tokens": 120, "seed": 1)");
  const Json choice = answered.choice();
  const auto content = choice["message"]["content"].get<std::string>();
  EXPECT_EQ(content.front(), '{');
  EXPECT_EQ(Json::accept(content), choice["finish_reason"] == "stop") << content;
}

TEST_F(StructuredTest, a_completion_is_held_to_it_from_its_first_token) {
  const Answered answered = ask(
      "/v1/completions", Json::parse(R"({"prompt": ["Once upon a time", "A dog"], "n": 2, "seed": 3,
      "max_tokens": 400, )" + schema_format(kPerson) +
                                     "}"));
  ASSERT_EQ(answered.status, 200) << answered.body;
  const Json json = answered.json();
  ASSERT_EQ(json["choices"].size(), 4u);
  for (const Json& choice : json["choices"]) {
    EXPECT_EQ(choice["finish_reason"], "stop");
    expect_person(Json::parse(choice["text"].get<std::string>()));
  }
}

TEST_F(StructuredTest, choices_of_one_request_go_their_own_ways) {
  const Json json =
      chat(schema_format(kPerson) + R"(, "n": 4, "max_tokens": 400, "seed": 5)").json();
  std::set<std::string> contents;
  for (const Json& choice : json["choices"]) {
    const auto content = choice["message"]["content"].get<std::string>();
    expect_person(Json::parse(content));
    contents.insert(content);
  }
  EXPECT_GT(contents.size(), 1u);
}

TEST_F(StructuredTest, a_required_call_is_of_one_of_the_functions) {
  std::set<std::string> names;
  for (int seed = 0; seed < 4; ++seed) {
    const Json choice = chat(R"("tool_choice": "required", "max_tokens": 200, "tools": )" +
                             std::string(kTools) + R"(, "seed": )" + std::to_string(seed))
                            .choice();
    EXPECT_EQ(choice["finish_reason"], "tool_calls");
    EXPECT_TRUE(choice["message"]["content"].is_null());
    ASSERT_EQ(choice["message"]["tool_calls"].size(), 1u);
    const Json call = choice["message"]["tool_calls"][0]["function"];
    const Json arguments = Json::parse(call["arguments"].get<std::string>());
    if (call["name"] == "get_weather") {
      EXPECT_THAT(arguments["unit"], AnyOf("celsius", "fahrenheit"));
      EXPECT_LE(arguments["city"].get<std::string>().size(), 32u);
    } else {
      EXPECT_EQ(call["name"], "get_time");
      EXPECT_EQ(arguments, Json::object());
    }
  }
}

TEST_F(StructuredTest, a_named_function_is_the_one_called) {
  for (const std::string name : {"get_weather", "get_time"}) {
    const Json choice =
        chat(R"("max_tokens": 200, "temperature": 0, "tools": )" + std::string(kTools) +
             R"(, "tool_choice": {"type": "function", "function": {"name": ")" + name + R"("}})")
            .choice();
    EXPECT_EQ(choice["message"]["tool_calls"][0]["function"]["name"], name);
  }
}

TEST_F(StructuredTest, a_stream_says_what_the_whole_answer_says) {
  const std::string json_fields = schema_format(kPerson);
  const std::string call_fields = R"("tool_choice": "required", "tools": )" + std::string(kTools);
  for (const std::string& fields : {json_fields, call_fields}) {
    const std::string same = fields + R"(, "max_tokens": 400, "seed": 11)";
    const Json whole = chat(same).choice();
    const std::string body = chat(same + R"(, "stream": true)").body;
    std::string content, name, arguments, finish;
    for (std::size_t at = 0; (at = body.find("data: {", at)) != std::string::npos; ++at) {
      const Json event = Json::parse(body.substr(at + 6, body.find("\n\n", at) - at - 6));
      const Json& choice = event["choices"][0];
      content += choice["delta"].value("content", "");
      if (choice["delta"].contains("tool_calls")) {
        const Json& call = choice["delta"]["tool_calls"][0]["function"];
        name += call.value("name", "");
        arguments += call.value("arguments", "");
      }
      if (choice["finish_reason"].is_string()) finish = choice["finish_reason"];
    }
    EXPECT_EQ(whole["finish_reason"], finish);
    if (whole["message"].contains("tool_calls")) {
      const Json& call = whole["message"]["tool_calls"][0]["function"];
      EXPECT_EQ(call["name"], name);
      EXPECT_EQ(call["arguments"], arguments);
    } else {
      EXPECT_EQ(whole["message"]["content"], content);
    }
  }
}

TEST_F(StructuredTest, what_is_cut_off_says_so) {
  const Json choice = chat(schema_format(kPerson) + R"(, "max_tokens": 7, "seed": 1)").choice();
  EXPECT_EQ(choice["finish_reason"], "length");
  const auto content = choice["message"]["content"].get<std::string>();
  EXPECT_EQ(content.front(), '{');
  EXPECT_FALSE(Json::accept(content));
}

TEST_F(StructuredTest, a_header_that_is_cut_off_is_no_content) {
  for (int max_tokens = 1; max_tokens < 10; ++max_tokens) {
    const Json choice = chat(R"("tool_choice": "required", "tools": )" + std::string(kTools) +
                             R"(, "max_tokens": )" + std::to_string(max_tokens))
                            .choice();
    EXPECT_EQ(choice["finish_reason"], "length");
    const Json& content = choice["message"]["content"];
    EXPECT_TRUE(content.is_null() || content == "") << content;
  }
}

TEST_F(StructuredTest, reasoning_comes_first_where_an_effort_is_named_and_then_ends) {
  for (int seed = 0; seed < 4; ++seed) {
    const Answered answered =
        chat(schema_format(kPerson) +
             R"(, "reasoning_effort": "low", "max_tokens": 500, "seed": )" + std::to_string(seed));
    const Json choice = answered.choice();
    EXPECT_EQ(choice["finish_reason"], "stop");
    expect_person(Json::parse(choice["message"]["content"].get<std::string>()));
  }
}

TEST_F(StructuredTest, a_call_may_stand_in_for_the_answer_where_tools_are_offered) {
  for (int seed = 0; seed < 4; ++seed) {
    const Json choice = chat(schema_format(kPerson) + R"(, "max_tokens": 400, "tools": )" +
                             std::string(kTools) + R"(, "seed": )" + std::to_string(seed))
                            .choice();
    if (choice["finish_reason"] == "stop") {
      expect_person(Json::parse(choice["message"]["content"].get<std::string>()));
    } else {
      EXPECT_EQ(choice["finish_reason"], "tool_calls");
      EXPECT_EQ(choice["message"]["tool_calls"].size(), 1u);
    }
  }
}

TEST_F(StructuredTest, the_form_holds_under_penalties_bias_and_log_probabilities) {
  const Json choice =
      chat(schema_format(kPerson) + R"(, "max_tokens": 400, "seed": 2, "temperature": 2,
           "presence_penalty": 2, "frequency_penalty": -2, "logit_bias": {"100": 100, "4089": 100},
           "logprobs": true, "top_logprobs": 3)")
          .choice();
  EXPECT_EQ(choice["finish_reason"], "stop");
  expect_person(Json::parse(choice["message"]["content"].get<std::string>()));
  std::string spelled;
  for (const Json& token : choice["logprobs"]["content"]) {
    spelled += token["token"].get<std::string>();
    EXPECT_EQ(token["top_logprobs"].size(), 3u);
  }
  EXPECT_EQ(choice["message"]["content"], spelled);
}

TEST_F(StructuredTest, tokens_after_the_end_are_only_ends) {
  const Json json =
      chat(schema_format(kPerson) + R"(, "max_tokens": 300, "ignore_eos": true)").json();
  EXPECT_EQ(json["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(json["usage"]["completion_tokens"], 300);
  expect_person(Json::parse(json["choices"][0]["message"]["content"].get<std::string>()));
}

TEST_F(StructuredTest, what_cannot_be_held_is_refused_by_keyword_and_place) {
  const std::string schema = R"({"properties": {"a": {"not": {"type": "string"}}}})";
  const Answered format = chat(schema_format(schema));
  EXPECT_EQ(format.status, 400);
  EXPECT_EQ(format.json()["error"]["param"], "response_format");
  EXPECT_THAT(format.json()["error"]["message"], HasSubstr("\"not\""));
  EXPECT_THAT(format.json()["error"]["message"], HasSubstr("#/properties/a"));

  const std::string tools =
      R"("tools": [{"type": "function", "function": {"name": "f", "parameters": )";
  const Answered call = chat(tools + schema + R"(}}], "tool_choice": "required")");
  EXPECT_EQ(call.status, 400);
  EXPECT_EQ(call.json()["error"]["param"], "tools");
  EXPECT_THAT(call.json()["error"]["message"], HasSubstr("function f"));
  EXPECT_THAT(call.json()["error"]["message"], HasSubstr("\"not\""));
  EXPECT_EQ(chat(tools + R"({"type": "string"}}}], "tool_choice": "required")").status, 400);
  EXPECT_EQ(chat(tools + schema + R"(}}], "max_tokens": 2)").status, 200) << "auto holds nothing";
  EXPECT_EQ(ask("/v1/completions", Json::parse(R"({"prompt": "a", )" + schema_format(schema) + "}"))
                .status,
            400);
}

TEST_F(StructuredTest, functions_that_are_too_large_together_are_refused) {
  OutputConstraint constraint{.form = OutputForm::tool_call};
  for (int i = 0; i < 100; ++i) {
    const std::string max_items = std::to_string(2000 + i);
    constraint.functions.push_back(
        {.name = "f" + max_items,
         .parameters =
             R"({"properties": {"a": {"type": "array", "maxItems": )" + max_items + "}}}"});
  }
  const auto refused = constraints_.compile(constraint);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().param, "tools");
  constraint.functions.resize(1);
  EXPECT_TRUE(constraints_.compile(constraint));
}

TEST_F(StructuredTest, what_is_kept_of_schemas_is_bounded) {
  for (int i = 0; i < 300; ++i) {
    OutputConstraint constraint{.form = OutputForm::json_schema,
                                .schema = R"({"const": )" + std::to_string(i) + "}"};
    ASSERT_TRUE(constraints_.compile(constraint));
  }
  EXPECT_EQ(constraints_.num_kept(), 256u);
}

}  // namespace
}  // namespace gauntlet::server::inline openai
