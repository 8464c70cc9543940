// DirectFile: reads from a disk into the memory of a GPU without a buffer of the host, by cuFile,
// which is opened at run time. A build without cufile.h has the class, too, and says so.
#pragma once
#include <cstdint>
#include <memory>

#include "core/expected.h"
#include "core/os/system_files.h"

namespace gauntlet {

/// Part of a file into part of a GPU's memory.
struct DirectRead {
  void* memory = nullptr;  // as it was given to pin()
  std::int64_t at = 0;     // within it
  std::int64_t bytes = 0;
  std::int64_t offset = 0;  // within the file
};

class DirectFile {
 public:
  /// Why there can be none here; no error where the build and the machine have what it takes.
  static Expected<void> available(const SystemFiles& files);
  /// A file that is opened past the page cache, and stays open. Fails where cuFile would read into
  /// a buffer of the host behind the scenes (its compatibility mode).
  static Expected<std::unique_ptr<DirectFile>> open(int file);
  ~DirectFile();
  DirectFile(const DirectFile&) = delete;
  DirectFile& operator=(const DirectFile&) = delete;

  /// Shows the disk where that memory of the GPU is.
  Expected<void> pin(void* memory, std::int64_t bytes);
  void unpin(void* memory) noexcept;
  /// All of it, when it returns.
  Expected<void> read(const DirectRead& read);

 private:
  struct State;
  explicit DirectFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gauntlet
