// The formats a schema may name, as patterns of some of the texts that have them.
#pragma once
#include <string_view>

namespace gauntlet::engine::grammar {

/// Null for a format that is not known here.
const char* pattern_of_format(std::string_view format);

/// Formats of numbers that say how a reader keeps them and nothing of their value.
bool is_number_storage(std::string_view format);

}  // namespace gauntlet::engine::grammar
