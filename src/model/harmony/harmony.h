// Conversations in harmony, the format gpt-oss was trained on: messages to tokens. How they come
// back is in harmony_parser.h.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/expected.h"
#include "model/tokens/tokenizer.h"

namespace gauntlet::model::inline harmony {

enum class Role { system, developer, user, assistant, tool };
enum class ReasoningEffort { low, medium, high };

std::string_view name_of(Role role);
/// Nothing for a word that names no role.
std::optional<Role> role_named(std::string_view name);

struct ToolFunction {
  std::string name;
  std::string description;
  std::string parameters;  // a JSON schema; empty: the function takes none
};

/// A group of functions, such as "functions" for the developer's own. One without functions is
/// described in words alone.
struct ToolNamespace {
  std::string name = "functions";
  std::string description;
  std::vector<ToolFunction> functions;
};

/// What is absent is not written.
struct SystemContent {
  std::optional<std::string> identity =
      "You are ChatGPT, a large language model trained by OpenAI.";
  std::optional<std::string> knowledge_cutoff = "2024-06";
  std::optional<std::string> current_date;  // as in 2025-06-28
  std::optional<ReasoningEffort> effort = ReasoningEffort::medium;
  std::vector<ToolNamespace> tools;  // built-in ones
  std::vector<std::string> channels = {"analysis", "commentary", "final"};
};

struct DeveloperContent {
  std::optional<std::string> instructions;
  std::vector<ToolNamespace> tools;
};

/// Who says something to whom, and how. Empty is absent.
struct MessageHeader {
  Role role = Role::user;
  std::string name;          // of a tool, as in "functions.get_weather", or of a user
  std::string recipient;     // of an assistant's call, the tool; of a tool's answer, "assistant"
  std::string channel;       // "analysis", "commentary" or "final"
  std::string content_type;  // as in "<|constrain|>json"

  bool operator==(const MessageHeader&) const = default;
};

struct Message {
  MessageHeader header;
  std::variant<std::string, SystemContent, DeveloperContent> content;
};

/// Whether the prompt ends where an assistant's answer begins.
enum class RenderFor { completion, record };
/// Whether reasoning that led to a final answer is left out, as the model expects of past turns.
enum class PastAnalysis { dropped, kept };

class Harmony {
 public:
  /// The tokenizer must have harmony's special tokens, and outlive this.
  static Expected<Harmony> make(const Tokenizer& tokenizer);
  static Expected<Harmony> make(Tokenizer&&) = delete;

  /// Text within messages never becomes a special token, and nothing is put before the first
  /// message. An error is the conversation's fault: a tool without a name, parameters that are no
  /// schema.
  Expected<std::vector<std::int32_t>> render(std::span<const Message> messages,
                                             RenderFor purpose = RenderFor::completion,
                                             PastAnalysis past = PastAnalysis::dropped) const;

  struct Specials {
    std::int32_t start, message, channel, constrain, end, call, done, end_of_text;
  };
  const Specials& specials() const { return specials_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }

 private:
  explicit Harmony(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

  const Tokenizer* tokenizer_;
  Specials specials_{};
};

/// The "# Tools" section of a prompt, namespaces by name.
Expected<std::string> render_tools(std::span<const ToolNamespace> tools);

/// A JSON schema as the TypeScript type that harmony writes for it.
Expected<std::string> schema_to_typescript(std::string_view schema);

}  // namespace gauntlet::model::inline harmony
