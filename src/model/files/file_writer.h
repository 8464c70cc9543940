// A large file written in pieces: it appears under its name when it is whole, or not at all.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "core/expected.h"

namespace gauntlet::model::inline files {

class FileWriter {
 public:
  static Expected<FileWriter> create(const std::filesystem::path& path);
  FileWriter(FileWriter&& other) noexcept;
  FileWriter& operator=(FileWriter&&) = delete;
  ~FileWriter();  // removes what was not finished

  /// Failures are kept for finish(); after the first, nothing more is written.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view bytes) { write(std::as_bytes(std::span(bytes))); }
  void pad_to(std::uint64_t alignment);

  std::uint64_t written() const { return written_; }
  bool failed() const { return error_number_ != 0; }
  /// Puts the file in its place.
  Expected<void> finish();

 private:
  enum class Name { none, temporary };  // what the file is called until it is finished

  FileWriter(int descriptor, Name name, std::filesystem::path path);
  void flush();

  int descriptor_ = -1;
  Name name_ = Name::none;
  std::filesystem::path path_;
  std::vector<std::byte> buffer_;
  std::uint64_t written_ = 0;
  int error_number_ = 0;
};

}  // namespace gauntlet::model::inline files
