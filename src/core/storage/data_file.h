// DataFile: a file on a real disk whose every byte is a function of a seed, so that what was read
// from it can be checked without reading it again.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/expected.h"
#include "core/random.h"

namespace gauntlet {

/// What O_DIRECT asks of offsets, lengths and addresses.
constexpr std::int64_t kDirectBytes = 4096;

/// An open file that is closed with the object.
class OpenFile {
 public:
  explicit OpenFile(int descriptor = -1) : descriptor_(descriptor) {}
  ~OpenFile();
  OpenFile(OpenFile&& other) noexcept;
  OpenFile& operator=(OpenFile&& other) noexcept;

  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

/// A temporary file without a name: it is gone with the process, however that ends.
class DataFile {
 public:
  /// Makes the bytes [begin, begin + out.size()), both multiples of kDirectBytes.
  using Maker = std::function<void(std::span<unsigned char> out, std::int64_t begin)>;

  /// In `folder`, of `bytes` (rounded up to kDirectBytes); written past the page cache. Fails where
  /// the folder is no disk (tmpfs), refuses O_DIRECT or lacks the space.
  static Expected<std::unique_ptr<DataFile>> make(const std::filesystem::path& folder,
                                                  std::int64_t bytes, const Maker& maker);
  /// Of random words: word i is words.bits(i).
  static Expected<std::unique_ptr<DataFile>> of_words(const std::filesystem::path& folder,
                                                      std::int64_t bytes, const Random& words);

  /// For reads through the page cache, and past it.
  int cached() const { return cached_.get(); }
  int direct() const { return direct_.get(); }
  std::int64_t bytes() const { return bytes_; }

  /// Drops the file from the page cache. Fails where pages stay, which mincore() tells.
  Expected<void> evict() const;
  /// Reads all of it into the page cache. Fails where memory does not hold it.
  Expected<void> load() const;
  /// How much of it the page cache holds, as mincore() says.
  Expected<std::int64_t> cached_bytes() const;

 private:
  DataFile(OpenFile cached, OpenFile direct, std::int64_t bytes);

  OpenFile cached_, direct_;
  std::int64_t bytes_;
};

/// All of [offset, offset + out.size()): pread() until it is there.
Expected<void> read_fully(int file, std::span<unsigned char> out, std::int64_t offset);

}  // namespace gauntlet
