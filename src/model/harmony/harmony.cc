#include "model/harmony/harmony.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "core/check.h"

namespace gauntlet::model::inline harmony {
namespace {

constexpr std::array<std::string_view, 5> kRoles = {"system", "developer", "user", "assistant",
                                                    "tool"};
constexpr std::string_view kConstrain = "<|constrain|>";

std::string_view name_of_effort(ReasoningEffort effort) {
  constexpr std::array<std::string_view, 3> kEfforts = {"low", "medium", "high"};
  return kEfforts[static_cast<std::size_t>(effort)];
}

bool has_functions(const Message& message) {
  const auto* developer = std::get_if<DeveloperContent>(&message.content);
  return developer &&
         std::any_of(developer->tools.begin(), developer->tools.end(), [](const auto& tool) {
           return tool.name == "functions" && !tool.functions.empty();
         });
}

enum class FunctionTools { absent, present };

Expected<std::string> system_text(const SystemContent& system, FunctionTools functions) {
  std::vector<std::string> sections;
  std::vector<std::string> top;
  if (system.identity) top.push_back(*system.identity);
  if (system.knowledge_cutoff) top.push_back("Knowledge cutoff: " + *system.knowledge_cutoff);
  if (system.current_date) top.push_back("Current date: " + *system.current_date);
  if (!top.empty()) sections.push_back(fmt::format("{}", fmt::join(top, "\n")));
  if (system.effort)
    sections.push_back(fmt::format("Reasoning: {}", name_of_effort(*system.effort)));
  if (!system.tools.empty()) {
    const auto tools = render_tools(system.tools);
    if (!tools) return tools.error();
    sections.push_back(*tools);
  }
  if (!system.channels.empty()) {
    sections.push_back(
        fmt::format("# Valid channels: {}. Channel must be included for every message.{}",
                    fmt::join(system.channels, ", "),
                    functions == FunctionTools::present
                        ? "\nCalls to these tools must go to the commentary channel: 'functions'."
                        : ""));
  }
  return fmt::format("{}", fmt::join(sections, "\n\n"));
}

Expected<std::string> developer_text(const DeveloperContent& developer) {
  std::vector<std::string> sections;
  if (developer.instructions) {
    sections.push_back("# Instructions");
    sections.push_back(*developer.instructions);
  }
  if (!developer.tools.empty()) {
    const auto tools = render_tools(developer.tools);
    if (!tools) return tools.error();
    sections.push_back(*tools);
  }
  return fmt::format("{}", fmt::join(sections, "\n\n"));
}

Expected<std::string> content_text(const Message& message, FunctionTools functions) {
  if (const auto* system = std::get_if<SystemContent>(&message.content)) {
    check(message.header.role == Role::system, "SystemContent is for a system message");
    return system_text(*system, functions);
  }
  if (const auto* developer = std::get_if<DeveloperContent>(&message.content)) {
    check(message.header.role == Role::developer, "DeveloperContent is for a developer message");
    return developer_text(*developer);
  }
  return std::get<std::string>(message.content);
}

/// Appends text and special tokens. Neighbouring texts are encoded apart, as harmony does.
class Writer {
 public:
  Writer(const Tokenizer& tokenizer, std::vector<std::int32_t>& ids)
      : tokenizer_(tokenizer), ids_(ids) {}
  void text(std::string_view text) {
    const auto ids = tokenizer_.encode(text, SpecialTokens::as_text);
    ids_.insert(ids_.end(), ids.begin(), ids.end());
  }
  void token(std::int32_t id) { ids_.push_back(id); }

 private:
  const Tokenizer& tokenizer_;
  std::vector<std::int32_t>& ids_;
};

void write_header(const MessageHeader& header, const Harmony::Specials& specials, Writer& out) {
  out.token(specials.start);
  if (header.role == Role::tool) {
    out.text(header.name);
  } else {
    out.text(name_of(header.role));
    if (!header.name.empty()) out.text(":" + header.name);
  }
  if (!header.recipient.empty() && header.recipient != "all") out.text(" to=" + header.recipient);
  if (!header.channel.empty()) {
    out.token(specials.channel);
    out.text(header.channel);
  }
  if (header.content_type.starts_with(kConstrain)) {
    out.text(" ");
    out.token(specials.constrain);
    out.text(std::string_view(header.content_type).substr(kConstrain.size()));
  } else if (!header.content_type.empty()) {
    out.text(" " + header.content_type);
  }
  out.token(specials.message);
}

/// Where past reasoning ends: at the first final answer, once the last of the assistant's messages
/// is one.
std::size_t end_of_past(std::span<const Message> messages) {
  const auto last = std::find_if(messages.rbegin(), messages.rend(), [](const Message& message) {
    return message.header.role == Role::assistant;
  });
  if (last == messages.rend() || last->header.channel != "final") return 0;
  const auto first = std::find_if(messages.begin(), messages.end(), [](const Message& message) {
    return message.header.channel == "final";
  });
  return static_cast<std::size_t>(first - messages.begin());
}

}  // namespace

std::string_view name_of(Role role) { return kRoles[static_cast<std::size_t>(role)]; }

std::optional<Role> role_named(std::string_view name) {
  const auto at = std::find(kRoles.begin(), kRoles.end(), name);
  if (at == kRoles.end()) return std::nullopt;
  return static_cast<Role>(at - kRoles.begin());
}

Expected<Harmony> Harmony::make(const Tokenizer& tokenizer) {
  Harmony harmony(tokenizer);
  Specials& specials = harmony.specials_;
  const std::pair<std::string_view, std::int32_t*> wanted[] = {
      {"<|start|>", &specials.start},     {"<|message|>", &specials.message},
      {"<|channel|>", &specials.channel}, {kConstrain, &specials.constrain},
      {"<|end|>", &specials.end},         {"<|call|>", &specials.call},
      {"<|return|>", &specials.done},     {"<|endoftext|>", &specials.end_of_text}};
  for (const auto& [text, id] : wanted) {
    const auto found = tokenizer.special(text);
    if (!found) {
      return Error{fmt::format(
          "the model's tokenizer has no {}; conversations need a model of the gpt-oss family",
          text)};
    }
    *id = *found;
  }
  return harmony;
}

Expected<std::vector<std::int32_t>> Harmony::render(std::span<const Message> messages,
                                                    RenderFor purpose, PastAnalysis past) const {
  std::vector<std::int32_t> ids;
  Writer out(*tokenizer_, ids);
  const auto functions = std::any_of(messages.begin(), messages.end(), has_functions)
                             ? FunctionTools::present
                             : FunctionTools::absent;
  const std::size_t past_end = past == PastAnalysis::dropped ? end_of_past(messages) : 0;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const MessageHeader& header = messages[i].header;
    if (i < past_end && header.channel == "analysis") continue;
    if (header.role == Role::tool && header.name.empty()) {
      return Error{fmt::format("message {} is a tool's but does not name the tool", i),
                   ErrorKind::wrong_use};
    }
    const auto text = content_text(messages[i], functions);
    if (!text) return text.error();
    write_header(header, specials_, out);
    out.text(*text);
    const bool call = header.role == Role::assistant && !header.recipient.empty();
    out.token(call ? specials_.call : specials_.end);
  }
  if (purpose == RenderFor::completion) {
    out.token(specials_.start);
    out.text(name_of(Role::assistant));
  }
  return ids;
}

}  // namespace gauntlet::model::inline harmony
