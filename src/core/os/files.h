// Files read and written whole. What is written is either the old text or the new one, never a
// part, even when the process is killed.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "core/expected.h"

namespace gauntlet {

Expected<std::string> read_file(const std::filesystem::path& path);

/// Writes a temporary file in the same folder, syncs it and renames it over `path`.
Expected<void> atomic_write_file(const std::filesystem::path& path, std::string_view bytes);

/// Makes a folder and those above it; one that is there already is fine.
Expected<void> make_folders(const std::filesystem::path& folder);

/// Holds no error when files can be made in the folder; tried by making one.
Expected<void> is_writable_folder(const std::filesystem::path& folder);

}  // namespace gauntlet
