#include "model/files/model_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/files/mapped_file.h"
#include "model/weights.h"

namespace gauntlet::model::inline files {
namespace {

namespace fs = std::filesystem;

class MappedStorage : public WeightStorage {
 public:
  std::span<const std::byte> keep(MappedFile file) {
    files_.push_back(std::move(file));
    return files_.back().bytes();
  }
  void release(const std::byte* data, std::size_t bytes) override {
    for (const MappedFile& file : files_) file.release(data, bytes);
  }

 private:
  std::vector<MappedFile> files_;
};

/// Memory that is nobody's to give back.
class ForeignStorage : public WeightStorage {
 public:
  void release(const std::byte*, std::size_t) override {}
};

bool is_model_file(const fs::path& path) {
  return path.extension() == ".json" || path.extension() == ".safetensors";
}

/// The last part of a path, also of one that ends with a slash.
std::string last_part(const fs::path& path) {
  const fs::path whole = fs::absolute(path).lexically_normal();
  return whole.has_filename() ? whole.filename().string() : whole.parent_path().filename().string();
}

}  // namespace

Expected<ModelFiles> ModelFiles::open(const fs::path& path) {
  std::error_code error;
  std::vector<fs::path> paths;
  if (fs::is_directory(path, error)) {
    for (fs::directory_iterator entry(path, error), end; !error && entry != end;
         entry.increment(error)) {
      std::error_code ignored;
      if (is_model_file(entry->path()) && entry->is_regular_file(ignored)) {
        paths.push_back(entry->path());
      }
    }
    if (error) {
      return Error{.message = fmt::format("cannot list {}: {}", path.string(), error.message())};
    }
    std::sort(paths.begin(), paths.end());
    if (paths.empty()) {
      return Error{
          .message = fmt::format(
              "{} is not a model: it has no config.json and no .safetensors file", path.string())};
    }
  } else if (!fs::exists(path, error)) {
    return Error{.message = fmt::format("there is no model at {}", path.string())};
  } else if (path.extension() == ".gguf") {
    paths.push_back(path);
  } else {
    return Error{
        .message = fmt::format("{} is not a model: give a folder with config.json, or a .gguf file",
                               path.string())};
  }

  ModelFiles files;
  files.name_ = last_part(path);
  files.where_ = path.string();
  const auto storage = std::make_shared<MappedStorage>();
  for (const fs::path& each : paths) {
    auto mapped = MappedFile::open(each);
    if (!mapped) return mapped.error();
    files.files_.push_back({.name = each.filename().string(),
                            .where = each.string(),
                            .bytes = storage->keep(std::move(*mapped))});
  }
  files.storage_ = storage;
  return files;
}

ModelFiles::ModelFiles(std::string name, std::vector<ModelFile> in_memory)
    : name_(std::move(name)),
      where_(name_),
      files_(std::move(in_memory)),
      storage_(std::make_shared<ForeignStorage>()) {}

const ModelFile* ModelFiles::find(std::string_view name) const {
  const auto found = std::find_if(files_.begin(), files_.end(),
                                  [&](const ModelFile& file) { return file.name == name; });
  return found == files_.end() ? nullptr : &*found;
}

const ModelFile* ModelFiles::gguf() const {
  return files_.size() == 1 && files_[0].name.ends_with(".gguf") ? &files_[0] : nullptr;
}

}  // namespace gauntlet::model::inline files
