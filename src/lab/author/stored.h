// Sides that read files: what the page cache holds of the file when a sample begins, and what it
// holds after.
#pragma once
#include <functional>
#include <memory>

#include "core/storage/stored_words.h"
#include "lab/author/side.h"

namespace gauntlet::lab::inline author {

/// Drops the file from the page cache before each sample, outside of the time; a file system that
/// keeps it is a fault. Its outcome "page_cache_bytes" is what the cache holds of it afterwards.
Side reading_cold(std::shared_ptr<StoredWords> stored, Side side);

/// Has all of the file in the page cache before each sample, as another process would leave it.
Side reading_hot(std::shared_ptr<StoredWords> stored, Side side);

}  // namespace gauntlet::lab::inline author
