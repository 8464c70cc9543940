// Stands in for libFuzzer where it is not linked: runs the target on every file of the folders
// named.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "core/os/files.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  int count = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      const auto text = gauntlet::read_file(entry.path());
      if (!text) {
        std::fprintf(stderr, "%s\n", text.error().message.c_str());
        return 1;
      }
      // A copy of exactly its size, so that a sanitizer sees one byte too far.
      const auto copy = std::make_unique<std::uint8_t[]>(text->size());
      std::copy(text->begin(), text->end(), copy.get());
      LLVMFuzzerTestOneInput(copy.get(), text->size());
      ++count;
    }
  }
  std::printf("%d inputs\n", count);
  return count > 0 ? 0 : 1;
}
