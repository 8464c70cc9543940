// Renders conversations and parses tokens, one JSON request per line, so that another
// implementation can be held against harmony.h. The JSON of messages is that of openai-harmony.
//   harmony_lines <tokenizer.json>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/os/files.h"
#include "model/harmony/harmony_parser.h"

namespace gauntlet::model {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& json, const char* key) {
  return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : "";
}

std::optional<std::string> optional_text(const Json& json, const char* key) {
  return json.contains(key) && json[key].is_string() ? std::optional(json[key].get<std::string>())
                                                     : std::nullopt;
}

std::vector<ToolNamespace> tools_of(const Json& json) {
  std::vector<ToolNamespace> tools;
  if (!json.contains("tools") || json["tools"].is_null()) return tools;
  for (const auto& [key, space] : json["tools"].items()) {
    ToolNamespace tool{.name = text_of(space, "name"),
                       .description = text_of(space, "description")};
    for (const Json& function : space["tools"]) {
      const bool takes = function.contains("parameters") && !function["parameters"].is_null();
      tool.functions.push_back({.name = text_of(function, "name"),
                                .description = text_of(function, "description"),
                                .parameters = takes ? function["parameters"].dump() : ""});
    }
    tools.push_back(tool);
  }
  return tools;
}

Message message_of(const Json& json) {
  Message message;
  message.header = {.role = *role_named(text_of(json, "role")),
                    .name = text_of(json, "name"),
                    .recipient = text_of(json, "recipient"),
                    .channel = text_of(json, "channel"),
                    .content_type = text_of(json, "content_type")};
  const Json& content = json.at("content").at(0);
  if (content["type"] == "system_content") {
    SystemContent system{.identity = optional_text(content, "model_identity"),
                         .knowledge_cutoff = optional_text(content, "knowledge_cutoff"),
                         .current_date = optional_text(content, "conversation_start_date"),
                         .tools = tools_of(content),
                         .channels = content["channel_config"]["valid_channels"]};
    const std::string effort = text_of(content, "reasoning_effort");
    system.effort = effort == "Low"      ? std::optional(ReasoningEffort::low)
                    : effort == "Medium" ? std::optional(ReasoningEffort::medium)
                    : effort == "High"   ? std::optional(ReasoningEffort::high)
                                         : std::nullopt;
    message.content = system;
  } else if (content["type"] == "developer_content") {
    message.content = DeveloperContent{.instructions = optional_text(content, "instructions"),
                                       .tools = tools_of(content)};
  } else {
    message.content = text_of(content, "text");
  }
  return message;
}

Json json_of(const ParsedMessage& message) {
  Json json = {{"role", std::string(name_of(message.header.role))}};
  const auto put = [&json](const char* key, const std::string& value) {
    if (!value.empty()) json[key] = value;
  };
  put("name", message.header.name);
  put("recipient", message.header.recipient);
  put("channel", message.header.channel);
  put("content_type", message.header.content_type);
  json["content"] = message.content;
  if (message.malformed) json["malformed"] = true;
  return json;
}

Json answer(const Harmony& harmony, const Json& request) {
  if (request.contains("messages")) {
    std::vector<Message> messages;
    for (const Json& message : request["messages"]) messages.push_back(message_of(message));
    const auto ids = harmony.render(
        messages, request["completion"] == true ? RenderFor::completion : RenderFor::record,
        request["drop"] == true ? PastAnalysis::dropped : PastAnalysis::kept);
    return ids ? Json{{"ids", *ids}} : Json{{"error", ids.error().message}};
  }
  HarmonyParser parser(harmony, role_named(text_of(request, "role")));
  std::string deltas;
  for (const std::int32_t id : request["ids"]) deltas += parser.push(id);
  deltas += parser.finish();
  Json messages = Json::array();
  for (const ParsedMessage& message : parser.messages()) messages.push_back(json_of(message));
  return {{"parsed", messages}, {"deltas", deltas}};
}

int run(const char* path) {
  const auto text = read_file(path);
  const auto tokenizer = text ? Tokenizer::from_json(*text, path) : text.error();
  const auto harmony = tokenizer ? Harmony::make(*tokenizer) : tokenizer.error();
  if (!harmony) {
    std::fprintf(stderr, "%s\n", harmony.error().message.c_str());
    return static_cast<int>(harmony.error().kind);
  }
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << answer(*harmony, Json::parse(line)).dump() << "\n";
  }
  return 0;
}

}  // namespace
}  // namespace gauntlet::model

int main(int argc, char** argv) { return argc == 2 ? gauntlet::model::run(argv[1]) : 2; }
