#include "core/storage/data_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "core/os/pages.h"
#include "core/os/threads.h"

namespace gauntlet {
namespace {

constexpr std::int64_t kWriteBytes = std::int64_t{8} << 20;
constexpr int kAttempts = 50;
constexpr int kEvictions = 500;
constexpr unsigned kRetryUs = 1000;
constexpr unsigned kReadAheadUs = 5000;  // 8 MiB of a disk of 2 GB/s take 4 ms
constexpr const char* kFix = "set TMPDIR to a folder on a disk (ext4, xfs)";

Error refused(const std::string& what, const std::filesystem::path& folder, int error) {
  return {fmt::format("{} in {} ({}): {}", what, folder.string(), std::strerror(error), kFix)};
}

/// O_TMPFILE where the file system has it, else a file that loses its name at once.
int open_nameless(const std::filesystem::path& folder) {
  const int file = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0) return file;
  std::string path = (folder / "gauntlet_data_XXXXXX").string();
  const int named = ::mkostemp(path.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(path.c_str());
  return named;
}

/// The same file under another description, whose flags are its own.
int open_again(int file, int flags) {
  return ::open(fmt::format("/proc/self/fd/{}", file).c_str(), flags | O_CLOEXEC);
}

/// Pages that the page cache has of a file, with those that are still being read. Nothing before
/// Linux 6.5, which has cachestat(); Debian 12's headers do not know its number.
std::optional<std::uint64_t> pages_with_those_on_their_way(int file) {
  constexpr long kCachestat = 451;
  struct {
    std::uint64_t offset = 0, length = 0;
  } whole;
  struct {
    std::uint64_t cached, dirty, written, evicted, lately_evicted;
  } pages{};
  if (::syscall(kCachestat, file, &whole, &pages, 0) != 0) return std::nullopt;
  return pages.cached;
}

}  // namespace

OpenFile::~OpenFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}
OpenFile::OpenFile(OpenFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
OpenFile& OpenFile::operator=(OpenFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

DataFile::DataFile(OpenFile cached, OpenFile direct, std::int64_t bytes)
    : cached_(std::move(cached)), direct_(std::move(direct)), bytes_(bytes) {}

Expected<std::unique_ptr<DataFile>> DataFile::make(const std::filesystem::path& folder,
                                                   std::int64_t bytes, const Maker& maker) {
  check(bytes > 0, "a data file needs bytes");
  bytes = (bytes + kDirectBytes - 1) / kDirectBytes * kDirectBytes;
  OpenFile file(open_nameless(folder));
  if (file.get() < 0) return refused("no file can be made", folder, errno);
  struct statfs system{};
  if (::fstatfs(file.get(), &system) == 0 &&
      (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC)) {
    return Error{fmt::format("{} is in memory, not on a disk: {}", folder.string(), kFix)};
  }
  OpenFile direct(open_again(file.get(), O_RDWR | O_DIRECT));
  if (direct.get() < 0) return refused("O_DIRECT is refused", folder, errno);
  if (const int error = ::posix_fallocate(file.get(), 0, bytes); error != 0) {
    return refused(fmt::format("no {} MiB for a file", bytes >> 20), folder, error);
  }
  const HugePages buffer(std::min(bytes, kWriteBytes));
  for (std::int64_t at = 0; at < bytes; at += kWriteBytes) {
    const std::int64_t count = std::min(kWriteBytes, bytes - at);
    maker({buffer.data(), static_cast<std::size_t>(count)}, at);
    if (::pwrite(direct.get(), buffer.data(), static_cast<std::size_t>(count), at) != count) {
      return refused("a file cannot be written past the page cache", folder, errno);
    }
  }
  if (::fsync(file.get()) != 0) return refused("a file cannot be synced", folder, errno);
  return std::unique_ptr<DataFile>(new DataFile(std::move(file), std::move(direct), bytes));
}

Expected<std::unique_ptr<DataFile>> DataFile::of_words(const std::filesystem::path& folder,
                                                       std::int64_t bytes, const Random& words) {
  return make(folder, bytes, [&](std::span<unsigned char> out, std::int64_t begin) {
    const std::int64_t first = begin / 8;
    parallel_for(static_cast<std::int64_t>(out.size() / 8),
                 [&](std::int64_t from, std::int64_t to) {
                   for (std::int64_t i = from; i < to; ++i) {
                     const std::uint64_t word = words.bits(static_cast<std::uint64_t>(first + i));
                     std::memcpy(out.data() + 8 * i, &word, 8);
                   }
                 });
  });
}

Expected<void> DataFile::evict() const {
  // Pages that another CPU has yet to put on a list survive a first attempt, and so do those that
  // are still read ahead of a reader that has ended. mincore() does not tell of the latter: where
  // the kernel cannot, either, what was held is looked at again when they should have come.
  std::int64_t left = 0;
  for (int attempt = 0; attempt < kEvictions; ++attempt) {
    const auto held = cached_bytes();
    if (!held) return held.error();
    left = *held;
    const auto pages = pages_with_those_on_their_way(cached());
    if (left == 0 && pages.value_or(0) == 0) return {};
    ::posix_fadvise(cached(), 0, 0, POSIX_FADV_DONTNEED);
    ::usleep(pages ? kRetryUs : kReadAheadUs);
  }
  return Error{
      fmt::format("{} bytes of a file stay in the page cache: its file system does not drop "
                  "them; {}",
                  left, kFix)};
}

Expected<void> DataFile::load() const {
  std::vector<unsigned char> chunk(std::size_t{1} << 20);
  std::int64_t held = 0;
  // A page may leave again while others are read: the kernel moves and reclaims them as it likes.
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    for (std::int64_t at = 0; at < bytes_; at += static_cast<std::int64_t>(chunk.size())) {
      const std::int64_t count = std::min<std::int64_t>(std::ssize(chunk), bytes_ - at);
      const auto read = read_fully(cached(), {chunk.data(), static_cast<std::size_t>(count)}, at);
      if (!read) return read;
    }
    const auto now = cached_bytes();
    if (!now) return now.error();
    held = *now;
    if (held == bytes_) return {};
    ::usleep(1000);
  }
  return Error{fmt::format("the page cache kept {} of {} bytes: free memory", held, bytes_)};
}

Expected<std::int64_t> DataFile::cached_bytes() const {
  const auto size = static_cast<std::size_t>(bytes_);
  void* mapped = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, cached(), 0);
  if (mapped == MAP_FAILED) return Error{"a file cannot be mapped to see what of it is cached"};
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> resident((size + page - 1) / page);
  const int asked = ::mincore(mapped, size, resident.data());
  ::munmap(mapped, size);
  if (asked != 0) return Error{"mincore() does not say what of a file is cached"};
  const auto pages = std::ranges::count_if(resident, [](unsigned char p) { return (p & 1) != 0; });
  return std::min<std::int64_t>(pages * static_cast<std::int64_t>(page), bytes_);
}

Expected<void> read_fully(int file, std::span<unsigned char> out, std::int64_t offset) {
  while (!out.empty()) {
    const ssize_t count = ::pread(file, out.data(), out.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      return Error{fmt::format("reading at {} failed: {}", offset, std::strerror(errno))};
    }
    if (count == 0) return Error{fmt::format("the file ends at {}", offset)};
    out = out.subspan(static_cast<std::size_t>(count));
    offset += count;
  }
  return {};
}

}  // namespace gauntlet
