// A file as read-only memory: pages come from disk when they are touched and can be let go.
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>

#include "core/expected.h"

namespace gauntlet::model::inline files {

class MappedFile {
 public:
  static Expected<MappedFile> open(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }

  /// Lets go of the pages that lie wholly in the range; reading them again brings them back.
  void release(const std::byte* data, std::size_t bytes) const;

 private:
  MappedFile(const std::byte* data, std::size_t size) : data_(data), size_(size) {}

  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace gauntlet::model::inline files
