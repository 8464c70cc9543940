#include "core/storage/stored_words.h"

#include <filesystem>
#include <random>

#include "core/os/threads.h"

namespace gauntlet {
namespace {

std::uint64_t system_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

}  // namespace

StoredWords::StoredWords(std::int64_t bytes) : bytes_(bytes), words_(system_seed()) {}

const DataFile& StoredWords::file() {
  std::call_once(made_, [&] {
    auto made = DataFile::of_words(std::filesystem::temp_directory_path(), bytes_, words_);
    if (!made) fail(made.error().message);
    file_ = std::move(*made);
  });
  return *file_;
}

void StoredWords::recompute(std::span<std::uint64_t> out, std::int64_t page) const {
  const std::int64_t first = page * kDirectBytes / 8;
  parallel_for(static_cast<std::int64_t>(out.size()), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      out[i] = words_.bits(static_cast<std::uint64_t>(first + i));
    }
  });
}

}  // namespace gauntlet
