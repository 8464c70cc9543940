// StoredWords: a file of random words that is made when it is first read from, and whose words
// anybody can compute: what a pair of the storage chapter shares between its sets of buffers.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "core/random.h"
#include "core/storage/data_file.h"

namespace gauntlet {

class StoredWords {
 public:
  /// No two of them have the same words, not even in two processes.
  explicit StoredWords(std::int64_t bytes);

  /// Makes it in the folder for temporary files. Throws a Fault that says why where it cannot.
  const DataFile& file();
  std::int64_t bytes() const { return bytes_; }
  std::int64_t pages() const { return bytes_ / kDirectBytes; }

  /// What stands in the file from this page on.
  void recompute(std::span<std::uint64_t> out, std::int64_t page) const;

 private:
  std::int64_t bytes_;
  Random words_;
  std::once_flag made_;
  std::unique_ptr<DataFile> file_;
};

}  // namespace gauntlet
