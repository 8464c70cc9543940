// Programs of Debian packages that tests start: installed, or unpacked by tools/setup.sh.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace gauntlet::tests {

/// The beginning of its command line; empty where the program is neither installed nor below
/// `tools`.
inline std::vector<std::string> tool_command(const std::filesystem::path& tools,
                                             const std::string& name) {
  namespace fs = std::filesystem;
  for (const char* folder : {"usr/sbin", "usr/bin"}) {
    if (const fs::path installed = fs::path("/") / folder / name; fs::exists(installed)) {
      return {installed.string()};
    }
    const fs::path unpacked = tools / folder / name;
    if (!fs::exists(unpacked)) continue;
    std::string libraries;
    for (const auto& entry : fs::directory_iterator(tools / "usr/lib")) {
      if (entry.is_directory()) libraries += (libraries.empty() ? "" : ":") + entry.path().string();
    }
    return {"/usr/bin/env", "LD_LIBRARY_PATH=" + libraries, unpacked.string()};
  }
  return {};
}

}  // namespace gauntlet::tests
