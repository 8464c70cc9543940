// Libraries opened at run time (cuBLAS, CUPTI, NVML, NCCL, MPI): the binary starts fast and
// anywhere.
#pragma once
#include <string>
#include <vector>

#include "core/expected.h"

namespace gauntlet {

/// Who finds a library's symbols: only who asks this object, or also what is loaded later (plug-ins
/// that are not linked with the library that loads them).
enum class SymbolScope { local, global };

/// Each name is tried with the loader's own search path first, then in each folder.
struct LibrarySearch {
  std::vector<std::string> names;    // "libcupti.so.13"
  std::vector<std::string> folders;  // tried in order; those that are missing are passed over
  SymbolScope scope = SymbolScope::local;
};

/// Where a CUDA toolkit keeps its libraries: below $CUDA_HOME, $CUDA_PATH and /usr/local/cuda.
std::vector<std::string> cuda_library_folders();

class DynamicLibrary {
 public:
  /// An error names the library, the places tried, and why the loader refused a file it found.
  static Expected<DynamicLibrary> open(const LibrarySearch& search);

  DynamicLibrary(DynamicLibrary&& other) noexcept;
  DynamicLibrary& operator=(DynamicLibrary&& other) noexcept;
  ~DynamicLibrary();

  /// The file that was loaded.
  const std::string& path() const { return path_; }

  /// A function of the library: `symbol<int(int)>("abs")`.
  template <class Function>
  Expected<Function*> symbol(const std::string& name) const {
    const auto found = address(name);
    if (!found) return found.error();
    return reinterpret_cast<Function*>(*found);
  }
  /// The address of a function or of an exported object.
  Expected<void*> address(const std::string& name) const;

  /// The library stays until the process ends, also when this object is gone: for those whose code
  /// still runs then (threads, handlers at exit).
  void keep_loaded() const;

 private:
  DynamicLibrary(void* handle, std::string path);

  void* handle_ = nullptr;
  std::string path_;
};

}  // namespace gauntlet
