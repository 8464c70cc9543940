#include "engine/grammar/numbers.h"

#include <algorithm>
#include <cstdlib>

namespace gauntlet::engine::grammar {
namespace {

constexpr int kMaxDigits = 400;
/// Readers turn numbers into doubles: more digits than this, or a larger exponent, could overflow.
constexpr int kMaxFreeDigits = 40;
constexpr int kMaxExponentDigits = 2;

using State = Nfa::State;

/// Numbers without sign on one side of a bound.
struct Magnitudes {
  enum class Side { at_least, at_most };
  Side side = Side::at_least;
  const Decimal& bound;
  bool exclusive = false;
};

void digits(Nfa& nfa, State from, State to, const Repetitions& times) {
  nfa.repeat(from, to, times, [&](State a, State b) { nfa.bytes(a, b, '0', '9'); });
}

void digit(Nfa& nfa, State from, State to, int low, int high) {
  if (low <= high)
    nfa.bytes(from, to, static_cast<std::uint8_t>(low), static_cast<std::uint8_t>(high));
}

void any_fraction(Nfa& nfa, State from, State to) {
  nfa.optional(from, to, [&](State a, State b) {
    const State point = nfa.add();
    nfa.text(a, point, ".");
    digits(nfa, point, b, {.min = 1});
  });
}

void any_whole(Nfa& nfa, State from, State to) {
  const State first = nfa.add();
  nfa.text(from, to, "0");
  nfa.bytes(from, first, '1', '9');
  digits(nfa, first, to, {.min = 0, .max = kMaxFreeDigits - 1});
}

/// The fractions, point included, that keep a number whose whole part equals the bound's within it.
void bounded_fraction(Nfa& nfa, State from, State to, const Magnitudes& set) {
  const bool at_least = set.side == Magnitudes::Side::at_least;
  const std::string& wanted = set.bound.fraction;
  if (wanted.empty() ? !set.exclusive : !at_least) nfa.empty(from, to);
  State at = nfa.add();
  nfa.text(from, at, ".");
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const State free = nfa.add(), equal = nfa.add();
    if (at_least)
      digit(nfa, at, free, wanted[i] + 1, '9');
    else
      digit(nfa, at, free, '0', wanted[i] - 1);
    digits(nfa, free, to, {});
    nfa.text(at, equal, wanted.substr(i, 1));
    // Shorter than the bound's fraction, hence less.
    if (!at_least && i + 1 < wanted.size()) nfa.empty(equal, to);
    at = equal;
  }
  // As many digits as the bound's, all equal.
  const State zeros = nfa.add();
  if (!set.exclusive) {
    if (at_least)
      digits(nfa, at, to, {.min = wanted.empty() ? 1 : 0});
    else
      nfa.repeat(at, to, {.min = wanted.empty() ? 1 : 0},
                 [&](State a, State b) { nfa.text(a, b, "0"); });
  } else if (at_least) {
    nfa.repeat(at, zeros, {}, [&](State a, State b) { nfa.text(a, b, "0"); });
    const State more = nfa.add();
    nfa.bytes(zeros, more, '1', '9');
    digits(nfa, more, to, {});
  }
}

void magnitudes(Nfa& nfa, State from, State to, const Magnitudes& set) {
  const std::string& whole = set.bound.whole;
  const auto size = static_cast<std::int64_t>(whole.size());
  const State free = nfa.add();  // the whole part alone decides: any fraction
  any_fraction(nfa, free, to);
  const State first = nfa.add();
  if (set.side == Magnitudes::Side::at_least) {
    nfa.bytes(from, first, '1', '9');
    digits(nfa, first, free, {.min = size, .max = std::max<std::int64_t>(size, kMaxFreeDigits)});
  } else if (size > 1) {
    nfa.text(from, free, "0");
    nfa.bytes(from, first, '1', '9');
    digits(nfa, first, free, {.min = 0, .max = size - 2});
  }
  State at = from;
  for (std::int64_t i = 0; i < size; ++i) {
    const State differs = nfa.add(), equal = nfa.add();
    if (set.side == Magnitudes::Side::at_least)
      digit(nfa, at, differs, whole[i] + 1, '9');
    else
      digit(nfa, at, differs, i == 0 && size > 1 ? '1' : '0', whole[i] - 1);
    digits(nfa, differs, free, {.min = size - i - 1, .max = size - i - 1});
    nfa.text(at, equal, whole.substr(i, 1));
    at = equal;
  }
  bounded_fraction(nfa, at, to, set);
}

/// Zero spelled with a minus counts as zero.
void at_least(Nfa& nfa, State from, State to, const Bound& bound) {
  using Side = Magnitudes::Side;
  const State minus = nfa.add();
  const bool strict_zero = bound.value.is_zero() && bound.exclusive;
  if (bound.value.negative || (bound.value.is_zero() && !strict_zero)) {
    nfa.text(from, minus, "-");
    magnitudes(nfa, minus, to,
               {.side = Side::at_most, .bound = bound.value, .exclusive = bound.exclusive});
    const State free = nfa.add();
    any_whole(nfa, from, free);
    any_fraction(nfa, free, to);
  } else {
    magnitudes(nfa, from, to,
               {.side = Side::at_least, .bound = bound.value, .exclusive = bound.exclusive});
  }
}

void at_most(Nfa& nfa, State from, State to, const Bound& bound) {
  using Side = Magnitudes::Side;
  const State minus = nfa.add();
  nfa.text(from, minus, "-");
  if (bound.value.negative || (bound.value.is_zero() && bound.exclusive)) {
    magnitudes(nfa, minus, to,
               {.side = Side::at_least, .bound = bound.value, .exclusive = bound.exclusive});
  } else {
    const State free = nfa.add();
    any_whole(nfa, minus, free);
    any_fraction(nfa, free, to);
    magnitudes(nfa, from, to,
               {.side = Side::at_most, .bound = bound.value, .exclusive = bound.exclusive});
  }
}

void unbounded(Nfa& nfa, State from, State to, NumberKind kind) {
  const State sign = nfa.add(), whole = nfa.add(), fraction = nfa.add();
  nfa.text(from, sign, "-");
  nfa.empty(from, sign);
  any_whole(nfa, sign, whole);
  if (kind == NumberKind::integer) return nfa.empty(whole, to);
  any_fraction(nfa, whole, fraction);
  nfa.optional(fraction, to, [&](State a, State b) {
    const State letter = nfa.add(), exponent = nfa.add();
    nfa.text(a, letter, "e");
    nfa.text(a, letter, "E");
    nfa.empty(letter, exponent);
    nfa.text(letter, exponent, "+");
    nfa.text(letter, exponent, "-");
    digits(nfa, exponent, b, {.min = 1, .max = kMaxExponentDigits});
  });
}

}  // namespace

std::optional<Decimal> parse_decimal(std::string_view text) {
  Decimal decimal;
  std::string all;
  std::size_t at = 0;
  std::int64_t point = -1;
  if (text.starts_with('-')) {
    decimal.negative = true;
    ++at;
  }
  for (; at < text.size() && text[at] != 'e' && text[at] != 'E'; ++at) {
    if (text[at] == '.')
      point = static_cast<std::int64_t>(all.size());
    else if (text[at] >= '0' && text[at] <= '9')
      all += text[at];
    else
      return std::nullopt;
  }
  if (all.empty()) return std::nullopt;
  if (point < 0) point = static_cast<std::int64_t>(all.size());
  if (at < text.size()) point += std::atoi(std::string(text.substr(at + 1)).c_str());
  if (std::abs(point) > kMaxDigits || all.size() > kMaxDigits) return std::nullopt;
  while (point <= 0) {
    all.insert(all.begin(), '0');
    ++point;
  }
  while (static_cast<std::int64_t>(all.size()) < point) all += '0';
  decimal.whole = all.substr(0, static_cast<std::size_t>(point));
  decimal.fraction = all.substr(static_cast<std::size_t>(point));
  while (decimal.whole.size() > 1 && decimal.whole[0] == '0') decimal.whole.erase(0, 1);
  while (decimal.fraction.ends_with('0')) decimal.fraction.pop_back();
  if (decimal.is_zero()) decimal.negative = false;
  return decimal;
}

Dfa compile_numbers(const NumberRange& range, Work& work) {
  const auto any = [&](Nfa& nfa, State a, State b) { unbounded(nfa, a, b, range.kind); };
  if (!range.min && !range.max) return dfa_of(work, any);
  std::optional<Dfa> all;
  const auto narrow = [&](const std::function<void(Nfa&, State, State)>& part) {
    Dfa by = dfa_of(work, part);
    all = all ? combine(*all, by, Product::both, work) : std::move(by);
  };
  if (range.min) narrow([&](Nfa& nfa, State a, State b) { at_least(nfa, a, b, *range.min); });
  if (range.max) narrow([&](Nfa& nfa, State a, State b) { at_most(nfa, a, b, *range.max); });
  if (range.kind == NumberKind::integer) narrow(any);
  return std::move(*all);
}

Dfa compile_multiples(std::int64_t step, Work& work) {
  constexpr std::uint32_t kMinus = 1, kZero = 2, kFirst = 3;  // then a state for each remainder
  work.spend(static_cast<std::size_t>(64 * step));
  Dfa dfa;
  dfa.states.resize(static_cast<std::size_t>(kFirst + step));
  const auto add = [&](std::uint32_t from, int digit, std::uint32_t to) {
    const auto byte = static_cast<std::uint8_t>('0' + digit);
    dfa.states[from].edges.push_back({.low = byte, .high = byte, .target = to});
  };
  const auto remainder = [&](std::int64_t before, int digit) {
    return kFirst + static_cast<std::uint32_t>((10 * before + digit) % step);
  };
  dfa.states[0].edges.push_back({.low = '-', .high = '-', .target = kMinus});
  for (int digit = 0; digit < 10; ++digit) {
    for (const std::uint32_t from : {std::uint32_t{0}, kMinus})
      add(from, digit, digit == 0 ? kZero : remainder(0, digit));
    for (std::int64_t before = 0; before < step; ++before)
      add(kFirst + static_cast<std::uint32_t>(before), digit, remainder(before, digit));
  }
  dfa.states[kZero].accepts = dfa.states[kFirst].accepts = true;
  return dfa;
}

}  // namespace gauntlet::engine::grammar
