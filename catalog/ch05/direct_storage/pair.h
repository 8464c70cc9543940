// What does it buy to read from a disk into the memory of a GPU without a buffer in between?
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>

#include "core/check.h"
#include "core/storage/direct_file.h"
#include "core/storage/stored_words.h"

namespace gauntlet::ch05::direct_storage {

/// The file as cuFile knows it: opened by the first side that asks, shared by all sets of buffers.
class SharedDirectFile {
 public:
  DirectFile& of(StoredWords& stored) {
    std::call_once(opened_, [&] {
      auto opened = DirectFile::open(stored.file().direct());
      if (!opened) fail(opened.error().message);
      file_ = std::move(*opened);
    });
    return *file_;
  }

 private:
  std::once_flag opened_;
  std::unique_ptr<DirectFile> file_;
};

struct Params {
  std::shared_ptr<StoredWords> stored;
  std::shared_ptr<SharedDirectFile> direct;
  const std::int32_t* start;  // [parts], in pinned host memory: the page where each begins
  unsigned char* out;         // [parts, part_bytes], on the device
  std::int64_t parts;
  std::int64_t part_bytes;
};

}  // namespace gauntlet::ch05::direct_storage
