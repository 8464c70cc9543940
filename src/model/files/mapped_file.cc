#include "model/files/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>

namespace gauntlet::model::inline files {
namespace {

Error map_failure(const std::filesystem::path& path, int number) {
  return {.message = fmt::format("cannot read {}: {}", path.string(), std::strerror(number))};
}

}  // namespace

Expected<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return map_failure(path, errno);
  struct stat status{};
  int number = ::fstat(descriptor, &status) == 0 ? 0 : errno;
  if (number == 0 && !S_ISREG(status.st_mode)) number = EINVAL;
  const auto size = static_cast<std::size_t>(status.st_size);
  void* memory = nullptr;
  if (number == 0 && size > 0) {
    memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (memory == MAP_FAILED) number = errno;
  }
  ::close(descriptor);
  if (number != 0) return map_failure(path, number);
  return MappedFile(static_cast<const std::byte*>(memory), size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::release(const std::byte* data, std::size_t bytes) const {
  const std::less<const std::byte*> before;
  if (before(data, data_) || !before(data, data_ + size_)) return;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  const auto end = begin + std::min(bytes, static_cast<std::size_t>(data_ + size_ - data));
  const std::uintptr_t first = (begin + page - 1) / page * page;
  const std::uintptr_t last = end / page * page;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace gauntlet::model::inline files
