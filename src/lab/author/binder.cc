#include "lab/author/binder.h"

#include <cstring>

namespace gauntlet::lab::inline author {

Fill Fill::uniform(float low, float high) {
  return {
      .write = [low, high](void* out, std::int64_t begin, std::int64_t end, const Random& random) {
        auto* values = static_cast<float*>(out);
        for (std::int64_t i = begin; i < end; ++i) {
          values[i - begin] = random.uniform(low, high, static_cast<std::uint64_t>(i));
        }
      }};
}

Fill Fill::integers(std::int64_t low, std::int64_t bound) {
  return {
      .write = [low, bound](void* out, std::int64_t begin, std::int64_t end, const Random& random) {
        auto* values = static_cast<std::int32_t*>(out);
        const auto range = static_cast<std::uint64_t>(bound - low);
        for (std::int64_t i = begin; i < end; ++i) {
          values[i - begin] = static_cast<std::int32_t>(
              low + static_cast<std::int64_t>(random.below(range, static_cast<std::uint64_t>(i))));
        }
      }};
}

Fill Fill::bytes() {
  // The element is unknown here, so the buffer is written as a whole, eight bytes at a time.
  return {.write =
              [](void* out, std::int64_t begin, std::int64_t end, const Random& random) {
                auto* bytes = static_cast<unsigned char*>(out);
                const auto count = static_cast<std::size_t>(end - begin);
                for (std::size_t i = 0; i < count; i += 8) {
                  const std::uint64_t word = random.bits(i);
                  std::memcpy(bytes + i, &word, std::min<std::size_t>(8, count - i));
                }
              },
          .whole = true,
          .in_bytes = true};
}

Fill Fill::constant_zero() { return {.write = nullptr}; }

}  // namespace gauntlet::lab::inline author
