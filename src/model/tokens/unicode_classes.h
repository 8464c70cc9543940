// The classes of characters that the o200k split tells apart, by Unicode 16.
#pragma once
#include <cstdint>

namespace gauntlet::model::inline tokens {

/// No character is in two classes. `other` is also what is not assigned.
enum class CharClass : std::uint8_t {
  other,
  upper,    // Lu, Lt
  lower,    // Ll
  letter,   // Lm, Lo: the split takes them as upper and as lower
  mark,     // M: likewise, though no letter
  number,   // N
  newline,  // \r, \n
  space,    // the rest of White_Space
};

/// Of any value, code point or not.
CharClass char_class(char32_t point);

}  // namespace gauntlet::model::inline tokens
