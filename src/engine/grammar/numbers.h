// JSON numbers within bounds, exactly: decimals are compared digit by digit, never rounded.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "engine/grammar/automata.h"

namespace gauntlet::engine::grammar {

/// A finite decimal: no zeros in front of `whole` but a single one, none behind `fraction`.
struct Decimal {
  bool negative = false;
  std::string whole = "0";
  std::string fraction;

  bool is_zero() const { return whole == "0" && fraction.empty(); }
};

/// Of a JSON number's text; nothing where it is none or would need more than 400 digits.
std::optional<Decimal> parse_decimal(std::string_view text);

struct Bound {
  Decimal value;
  bool exclusive = false;
};

enum class NumberKind { integer, number };

struct NumberRange {
  NumberKind kind = NumberKind::number;
  std::optional<Bound> min;
  std::optional<Bound> max;
};

/// Integers are written without fraction or exponent, and so are bounded numbers without exponent.
Dfa compile_numbers(const NumberRange& range, Work& work);

inline constexpr std::int64_t kMaxStep = 1000;
/// Integers that are multiples of a step, which is from 1 to kMaxStep.
Dfa compile_multiples(std::int64_t step, Work& work);

}  // namespace gauntlet::engine::grammar
