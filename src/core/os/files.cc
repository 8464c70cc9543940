#include "core/os/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace gauntlet {
namespace {

namespace fs = std::filesystem;

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  int get() const { return value_; }
  bool valid() const { return value_ >= 0; }

 private:
  int value_;
};

/// A file that is removed unless it was renamed into place.
struct TemporaryFile {
  Descriptor descriptor;
  fs::path path;

  TemporaryFile(Descriptor open_descriptor, fs::path at)
      : descriptor(std::move(open_descriptor)), path(std::move(at)) {}
  TemporaryFile(TemporaryFile&& other) noexcept
      : descriptor(std::move(other.descriptor)), path(std::exchange(other.path, fs::path())) {}
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  ~TemporaryFile() {
    if (!path.empty()) ::unlink(path.c_str());
  }
};

Error failure(const char* what, const fs::path& path, int number) {
  return {.message = fmt::format("cannot {} {}: {}", what, path.string(), std::strerror(number))};
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

Expected<TemporaryFile> make_temporary(const fs::path& beside) {
  constexpr int kAttempts = 100;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    fs::path path = folder_of(beside) /
                    fmt::format(".{}.{}.{}.tmp", beside.filename().string(), ::getpid(), attempt);
    // Not mkstemp: its 0600 would hide results from other users whatever the umask says.
    Descriptor descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (descriptor.valid()) return TemporaryFile(std::move(descriptor), std::move(path));
    if (errno != EEXIST) return failure("create a file in", folder_of(beside), errno);
  }
  return Error{.message = fmt::format("cannot create a temporary file in {}: {} old ones are left",
                                      folder_of(beside).string(), kAttempts)};
}

int write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace

Expected<std::string> read_file(const fs::path& path) {
  const Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor.valid()) return failure("read", path, errno);
  struct stat status {};
  std::string text;
  if (::fstat(descriptor.get(), &status) == 0 && S_ISREG(status.st_mode)) {
    text.reserve(static_cast<std::size_t>(status.st_size));
  }
  // Read to the end, whatever the size said: files of /proc and /sys say 0 or 4096.
  char buffer[16384];
  while (true) {
    const ssize_t count = ::read(descriptor.get(), buffer, sizeof(buffer));
    if (count == 0) return text;
    if (count > 0) {
      text.append(buffer, static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      return failure("read", path, errno);
    }
  }
}

Expected<void> atomic_write_file(const fs::path& path, std::string_view bytes) {
  auto temporary = make_temporary(path);
  if (!temporary) return temporary.error();
  const int descriptor = temporary->descriptor.get();
  if (const int number = write_all(descriptor, bytes)) return failure("write", path, number);
  if (::fsync(descriptor) != 0) return failure("sync", path, errno);
  if (::rename(temporary->path.c_str(), path.c_str()) != 0) return failure("replace", path, errno);
  temporary->path.clear();
  // Without this a power cut may undo the rename; some file systems refuse it, which costs no more
  // than that.
  const Descriptor folder(::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.valid()) ::fsync(folder.get());
  return {};
}

Expected<void> make_folders(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    return Error{
        .message = fmt::format("cannot make the folder {}: {}", folder.string(), error.message())};
  }
  if (!fs::is_directory(folder, error)) {
    return Error{.message = fmt::format("{} is in the way: it is not a folder", folder.string())};
  }
  return {};
}

Expected<void> is_writable_folder(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return Error{.message = fmt::format("{} is not a folder", folder.string())};
  }
  const auto temporary = make_temporary(folder / "writable");
  if (!temporary) return temporary.error();
  return {};
}

}  // namespace gauntlet
