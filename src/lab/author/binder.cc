#include "lab/author/binder.h"

#include <algorithm>
#include <cstring>

#include "core/check.h"
#include "core/narrow_floats.h"
#include "lab/author/fill_rule.h"

namespace gauntlet::lab::inline author {
namespace {

template <class T, class Value>
void write_each(void* out, std::int64_t begin, std::int64_t end, std::size_t element_bytes,
                Value value) {
  check(element_bytes == sizeof(T), "a fill of another element size");
  auto* values = static_cast<T*>(out);
  for (std::int64_t i = begin; i < end; ++i) values[i - begin] = value(i);
}

}  // namespace

Fill Fill::uniform(float low, float high) {
  return {.rule = Rule::uniform, .low = low, .high = high};
}

Fill Fill::integers(std::int64_t low, std::int64_t bound) {
  return {.rule = Rule::integers, .first = low, .bound = bound};
}

Fill Fill::whole_floats(std::int64_t low, std::int64_t bound) {
  return {.rule = Rule::whole_floats, .first = low, .bound = bound};
}

Fill Fill::whole_bf16(std::int64_t low, std::int64_t bound) {
  check(low >= -256 && bound <= 257, "bf16 does not hold all of these whole numbers");
  return {.rule = Rule::whole_bf16, .first = low, .bound = bound};
}

Fill Fill::whole_bf16_rows(std::int64_t low, std::int64_t bound, std::int64_t row,
                           std::int64_t kinds) {
  check(row > 0 && kinds > 0, "rows that repeat have a length and a number of kinds");
  Fill fill = whole_bf16(low, bound);
  fill.row = row;
  fill.kinds = kinds;
  fill.mixes = false;
  return fill;
}

Fill Fill::whole_f8e4m3(std::int64_t low, std::int64_t bound) {
  check(low >= -16 && bound <= 17, "e4m3 does not hold all of these whole numbers");
  return {.rule = Rule::whole_f8e4m3, .first = low, .bound = bound};
}

Fill Fill::permutation(std::int64_t size) {
  return {.rule = Rule::permutation, .bound = size, .mixes = false};
}

Fill Fill::both_layouts(float low, float high, std::int64_t fields, std::int64_t records) {
  return {.rule = Rule::layouts,
          .low = low,
          .high = high,
          .fields = fields,
          .records = records,
          .mixes = false};
}

Fill Fill::bytes() { return {.rule = Rule::bytes}; }

Fill Fill::constant_zero() { return {}; }

void Fill::write(void* out, std::int64_t begin, std::int64_t end, std::size_t element_bytes,
                 const Random& random) const {
  const auto count = static_cast<std::size_t>(end - begin);
  switch (rule) {
    case Rule::zeros:
      std::memset(out, 0, count * element_bytes);
      return;
    case Rule::uniform:
      return write_each<float>(out, begin, end, element_bytes,
                               [&](std::int64_t i) { return uniform_value(random, low, high, i); });
    case Rule::layouts:
      return write_each<float>(out, begin, end, element_bytes, [&](std::int64_t i) {
        return uniform_value(random, low, high, field_index(i, fields, records));
      });
    case Rule::whole_floats:
      return write_each<float>(out, begin, end, element_bytes, [&](std::int64_t i) {
        return static_cast<float>(integer_value(random, first, bound, i));
      });
    case Rule::whole_bf16:
      return write_each<Bf16>(out, begin, end, element_bytes, [&](std::int64_t i) {
        return to_bf16(
            static_cast<float>(integer_value(random, first, bound, repeated_index(i, row, kinds))));
      });
    case Rule::whole_f8e4m3:
      return write_each<F8e4m3>(out, begin, end, element_bytes, [&](std::int64_t i) {
        return to_f8e4m3(static_cast<float>(integer_value(random, first, bound, i)));
      });
    case Rule::integers:
      return write_each<std::int32_t>(out, begin, end, element_bytes, [&](std::int64_t i) {
        return integer_value(random, first, bound, i);
      });
    case Rule::permutation:
      return write_each<std::int32_t>(out, begin, end, element_bytes, [&](std::int64_t i) {
        return permuted_value(random, bound, i);
      });
    case Rule::bytes: {
      auto* bytes = static_cast<unsigned char*>(out);
      const auto first_byte = static_cast<std::uint64_t>(begin) * element_bytes;
      const std::uint64_t last_byte = first_byte + count * element_bytes;
      for (std::uint64_t at = first_byte; at < last_byte;) {
        const std::uint64_t word = byte_word(random, at / 8);
        const std::uint64_t in_word = at % 8;
        const std::uint64_t taken = std::min(8 - in_word, last_byte - at);
        std::memcpy(bytes + (at - first_byte),
                    reinterpret_cast<const unsigned char*>(&word) + in_word, taken);
        at += taken;
      }
      return;
    }
    case Rule::custom:
      make(out, begin, end, random);
      return;
  }
}

}  // namespace gauntlet::lab::inline author
