#include "core/os/dynamic_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "core/check.h"

namespace gauntlet {
namespace {

std::string last_loader_error() {
  const char* words = ::dlerror();
  return words ? words : "unknown error";
}

std::string path_of(void* handle, const std::string& fallback) {
  link_map* map = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr || *map->l_name == '\0') {
    return fallback;
  }
  return map->l_name;
}

}  // namespace

std::vector<std::string> cuda_library_folders() {
  std::vector<std::string> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH", ""}) {
    const char* value = *variable ? std::getenv(variable) : "/usr/local/cuda";
    if (value == nullptr || *value == '\0') continue;
    for (const char* below : {"/lib64", "/lib", "/extras/CUPTI/lib64"}) {
      folders.push_back(std::string(value) + below);
    }
  }
  return folders;
}

DynamicLibrary::DynamicLibrary(void* handle, std::string path)
    : handle_(handle), path_(std::move(path)) {}

DynamicLibrary::DynamicLibrary(DynamicLibrary&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), path_(std::move(other.path_)) {}

DynamicLibrary& DynamicLibrary::operator=(DynamicLibrary&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(path_, other.path_);
  return *this;
}

DynamicLibrary::~DynamicLibrary() {
  if (handle_ != nullptr) ::dlclose(handle_);
}

Expected<DynamicLibrary> DynamicLibrary::open(const LibrarySearch& search) {
  check(!search.names.empty(), "a library needs a name to be looked for");
  const int flags = RTLD_NOW | (search.scope == SymbolScope::global ? RTLD_GLOBAL : RTLD_LOCAL);
  std::string refused;
  for (const std::string& name : search.names) {
    if (void* handle = ::dlopen(name.c_str(), flags)) {
      return DynamicLibrary(handle, path_of(handle, name));
    }
    // The loader says the same of a library that is missing and of one that lacks a dependency;
    // only the name it starts with differs.
    const std::string words = last_loader_error();
    if (!words.starts_with(name + ": cannot open shared object file: No such file"))
      refused = words;
    for (const std::string& folder : search.folders) {
      const std::string path = folder + "/" + name;
      std::error_code error;
      if (!std::filesystem::exists(path, error)) continue;
      if (void* handle = ::dlopen(path.c_str(), flags)) {
        return DynamicLibrary(handle, path_of(handle, path));
      }
      refused = last_loader_error();
    }
  }
  const std::string names = fmt::format("{}", fmt::join(search.names, " or "));
  if (!refused.empty()) {
    return Error{.message = fmt::format("{} cannot be loaded: {}", names, refused)};
  }
  std::string places = "the loader's path (set LD_LIBRARY_PATH to add to it)";
  for (const std::string& folder : search.folders) places += ", " + folder;
  return Error{.message = fmt::format("{} not found: looked in {}", names, places)};
}

Expected<void*> DynamicLibrary::address(const std::string& name) const {
  check(handle_ != nullptr, "a moved-from library has no symbols");
  ::dlerror();
  void* found = ::dlsym(handle_, name.c_str());
  if (found == nullptr) {
    return Error{.message =
                     fmt::format("{} has no symbol {}: another version is needed", path_, name)};
  }
  return found;
}

void DynamicLibrary::keep_loaded() const {
  ::dlopen(path_.c_str(), RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

}  // namespace gauntlet
