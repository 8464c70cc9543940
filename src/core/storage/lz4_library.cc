#include "core/storage/lz4_library.h"

#include "core/storage/lz4_block.h"
#if GAUNTLET_HAVE_LZ4
#include <lz4.h>
#endif

namespace gauntlet {

#if GAUNTLET_HAVE_LZ4

Expected<void> lz4_compiled() { return {}; }

std::vector<unsigned char> compress_lz4_block(std::span<const unsigned char> raw) {
  const int size = static_cast<int>(raw.size());
  std::vector<unsigned char> out(static_cast<std::size_t>(LZ4_compressBound(size)));
  const int bytes =
      LZ4_compress_default(reinterpret_cast<const char*>(raw.data()),
                           reinterpret_cast<char*>(out.data()), size, static_cast<int>(out.size()));
  check(bytes > 0, "liblz4 compresses what fits its bound");
  out.resize(static_cast<std::size_t>(bytes));
  return out;
}

std::int64_t inflate_lz4_block(std::span<const unsigned char> in, std::span<unsigned char> out) {
  const int bytes = LZ4_decompress_safe(reinterpret_cast<const char*>(in.data()),
                                        reinterpret_cast<char*>(out.data()),
                                        static_cast<int>(in.size()), static_cast<int>(out.size()));
  return bytes < 0 ? kLz4Corrupt : bytes;
}

#else

Expected<void> lz4_compiled() {
  return Error{"this program was built without liblz4: apt-get install liblz4-dev, then build"};
}
std::vector<unsigned char> compress_lz4_block(std::span<const unsigned char>) {
  fail(lz4_compiled().error().message);
}
std::int64_t inflate_lz4_block(std::span<const unsigned char>, std::span<unsigned char>) {
  fail(lz4_compiled().error().message);
}

#endif

}  // namespace gauntlet
