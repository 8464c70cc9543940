// A string of JSON, written without a tree: once per token of a stream.
#pragma once
#include <string>
#include <string_view>

namespace gauntlet::server::inline openai {

/// Appends the text between quotes as dump() would, bytes that are no characters replaced.
void append_json_text(std::string_view text, std::string& out);

}  // namespace gauntlet::server::inline openai
