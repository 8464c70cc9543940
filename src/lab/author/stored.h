// Sides that read files: what the page cache holds of the file when a sample begins, and what it
// holds after.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/os/threads.h"
#include "core/storage/stored_words.h"
#include "lab/author/reference.h"
#include "lab/author/side.h"

namespace gauntlet::lab::inline author {

/// Drops the file from the page cache before each sample, outside of the time; a file system that
/// keeps it is a fault. Its outcome "page_cache_bytes" is what the cache holds of it afterwards.
Side reading_cold(const std::shared_ptr<StoredWords>& stored, Side side);

/// Has all of the file in the page cache before each sample, as another process would leave it.
Side reading_hot(const std::shared_ptr<StoredWords>& stored, Side side);

/// Parts of a file, one behind the other in `out`.
struct StoredParts {
  const std::int32_t* start;  // [count]: the page where each begins
  std::int64_t count;
  std::int64_t bytes;  // of each
  unsigned char* out;
};

/// A yardstick for one thread that reads long parts past the page cache: all threads do, 1 MiB at a
/// time, which is what a disk's ceiling is most often found by.
Side reading_by_all(const std::shared_ptr<StoredWords>& stored, const StoredParts& parts,
                    ThreadPool& pool);

/// Expects in output `name`, of bytes, parts of the file one behind the other: as many as `start`
/// has pages where they begin.
void expect_parts(Reference& reference, const std::string& name, const StoredWords& stored,
                  std::span<const std::int32_t> start);

}  // namespace gauntlet::lab::inline author
