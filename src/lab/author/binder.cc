#include "lab/author/binder.h"

#include <algorithm>
#include <cstring>

#include "core/check.h"
#include "lab/author/fill_rule.h"

namespace gauntlet::lab::inline author {

Fill Fill::uniform(float low, float high) {
  return {.rule = Rule::uniform, .low = low, .high = high};
}

Fill Fill::integers(std::int64_t low, std::int64_t bound) {
  return {.rule = Rule::integers, .first = low, .bound = bound};
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
    case Rule::uniform: {
      check(element_bytes == sizeof(float), "uniform() fills float32");
      auto* values = static_cast<float*>(out);
      for (std::int64_t i = begin; i < end; ++i) {
        values[i - begin] = uniform_value(random, low, high, i);
      }
      return;
    }
    case Rule::integers: {
      check(element_bytes == sizeof(std::int32_t), "integers() fills int32");
      auto* values = static_cast<std::int32_t*>(out);
      for (std::int64_t i = begin; i < end; ++i) {
        values[i - begin] = integer_value(random, first, bound, i);
      }
      return;
    }
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
