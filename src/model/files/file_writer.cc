#include "model/files/file_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace gauntlet::model::inline files {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBufferBytes = 4u << 20;

Error write_failure(const fs::path& path, int number) {
  return {.message = fmt::format("cannot write {}: {}", path.string(), std::strerror(number))};
}

fs::path temporary_name(const fs::path& path) {
  fs::path name = path;
  name.replace_filename(fmt::format(".{}.{}.tmp", path.filename().string(), ::getpid()));
  return name;
}

}  // namespace

Expected<FileWriter> FileWriter::create(const fs::path& path) {
  // A file without a name is gone when the process is, however it ends. Not all file systems know
  // them.
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  int descriptor = ::open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
  if (descriptor >= 0) return FileWriter(descriptor, Name::none, path);
  descriptor = ::open(temporary_name(path).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) return write_failure(path, errno);
  return FileWriter(descriptor, Name::temporary, path);
}

FileWriter::FileWriter(int descriptor, Name name, fs::path path)
    : descriptor_(descriptor), name_(name), path_(std::move(path)) {
  buffer_.reserve(kBufferBytes);
}

FileWriter::FileWriter(FileWriter&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      name_(other.name_),
      path_(std::move(other.path_)),
      buffer_(std::move(other.buffer_)),
      written_(other.written_),
      error_number_(other.error_number_) {}

FileWriter::~FileWriter() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  if (name_ == Name::temporary) ::unlink(temporary_name(path_).c_str());
}

void FileWriter::write(std::span<const std::byte> bytes) {
  written_ += bytes.size();
  while (!bytes.empty()) {
    const std::size_t count = std::min(bytes.size(), kBufferBytes - buffer_.size());
    buffer_.insert(buffer_.end(), bytes.begin(),
                   bytes.begin() + static_cast<std::ptrdiff_t>(count));
    bytes = bytes.subspan(count);
    if (buffer_.size() == kBufferBytes) flush();
  }
}

void FileWriter::pad_to(std::uint64_t alignment) {
  while (written_ % alignment != 0) write(std::string_view("\0", 1));
}

void FileWriter::flush() {
  std::span<const std::byte> rest = buffer_;
  while (!rest.empty() && !failed()) {
    const ssize_t count = ::write(descriptor_, rest.data(), rest.size());
    if (count >= 0) {
      rest = rest.subspan(static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      error_number_ = errno;
    }
  }
  buffer_.clear();
}

Expected<void> FileWriter::finish() {
  flush();
  if (!failed() && ::fsync(descriptor_) != 0) error_number_ = errno;
  const fs::path temporary = temporary_name(path_);
  if (!failed() && name_ == Name::none) {
    const std::string unnamed = fmt::format("/proc/self/fd/{}", descriptor_);
    const int linked =
        ::linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, temporary.c_str(), AT_SYMLINK_FOLLOW);
    if (linked == 0) name_ = Name::temporary;
    if (linked != 0) error_number_ = errno;
  }
  if (!failed() && ::rename(temporary.c_str(), path_.c_str()) != 0) error_number_ = errno;
  if (failed()) return write_failure(path_, error_number_);
  ::close(std::exchange(descriptor_, -1));
  return {};
}

}  // namespace gauntlet::model::inline files
