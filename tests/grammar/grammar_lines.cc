// Writes texts of a schema's grammar and says which texts it has, one JSON request per line, so
// that another implementation can be held against schema.h.
//   {"schema", "seed", "count"} -> {"texts"};  {"schema", "texts"} -> {"accepts"}
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "core/random.h"
#include "engine/grammar/matcher.h"
#include "engine/grammar/schema.h"

namespace gauntlet::engine::grammar {
namespace {

using Json = nlohmann::ordered_json;

bool accepts(const Grammar& grammar, const std::string& text) {
  Matcher matcher(grammar);
  return matcher.advance(text) && matcher.can_end();
}

/// Byte by byte; what closes is preferred once the text is long. Empty where it became too long.
std::string draw(const Grammar& grammar, Random random) {
  constexpr std::size_t kMaxBytes = 2000;
  Matcher matcher(grammar);
  std::string text;
  while (text.size() < kMaxBytes) {
    std::string bytes;
    for (int byte = 0; byte < 256; ++byte) {
      if (Matcher(matcher).advance(static_cast<std::uint8_t>(byte))) {
        bytes += static_cast<char>(byte);
      }
    }
    if (matcher.can_end() && (bytes.empty() || random.next_below(4) == 0)) return text;
    if (bytes.empty()) return "";
    char next = bytes[random.next_below(bytes.size())];
    const std::size_t closing = bytes.find_first_of("\"}]");
    if (closing != std::string::npos && random.next_below(120) < text.size()) next = bytes[closing];
    matcher.advance(static_cast<std::uint8_t>(next));
    text += next;
  }
  return "";
}

Json answer(const Json& request) {
  const auto grammar = compile_schema(request.at("schema").dump());
  if (!grammar) return {{"error", grammar.error().message}};
  if (request.contains("texts")) {
    Json accepted = Json::array();
    for (const Json& text : request["texts"]) {
      accepted.push_back(accepts(*grammar, text.get<std::string>()));
    }
    return {{"accepts", accepted}};
  }
  const Random seeds(request.at("seed").get<std::uint64_t>());
  Json texts = Json::array();
  for (std::uint64_t i = 0; i < request.at("count").get<std::uint64_t>(); ++i) {
    if (std::string text = draw(*grammar, Random(seeds.bits(i))); !text.empty()) {
      texts.push_back(std::move(text));
    }
  }
  return {{"texts", texts}};
}

}  // namespace
}  // namespace gauntlet::engine::grammar

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << gauntlet::engine::grammar::answer(nlohmann::ordered_json::parse(line)).dump()
              << "\n";
  }
}
