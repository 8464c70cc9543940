// What an event of a completion's stream says, found without parsing its JSON: this runs for every
// token, on cores that the server shares.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gauntlet::load::inline http {

/// Exact for the JSON that OpenAI's chunks are, with any white space: inside a string each quote is
/// escaped, so a quoted word before a colon is a key.
struct EventScan {
  bool is_done = false;   // [DONE]
  bool has_text = false;  // text, reasoning or a call's arguments, not empty
  bool has_usage = false;
  bool has_error = false;  // the server says that this request failed
};
EventScan scan_event(std::string_view data);

struct Usage {
  std::int64_t prompt_tokens = 0;
  std::int64_t completion_tokens = 0;
  std::int64_t cached_tokens = 0;
};

/// Of an event or a whole answer; nothing where it holds none.
std::optional<Usage> usage_of(std::string_view json_text);

/// The words of an OpenAI error object, or the text itself, cut to a line.
std::string error_words(std::string_view json_text);

}  // namespace gauntlet::load::inline http
