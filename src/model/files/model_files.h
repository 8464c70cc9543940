// The files of one model, wherever they are: mapped from a folder, one GGUF file, or memory of the
// program itself.
#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/expected.h"

namespace gauntlet::model {
class WeightStorage;
}

namespace gauntlet::model::inline files {

struct ModelFile {
  std::string name;   // in its folder: "config.json"
  std::string where;  // for people: "models/gauntlet-tiny/config.json"
  std::span<const std::byte> bytes;

  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

class ModelFiles {
 public:
  /// The .json and .safetensors files of a folder, or one .gguf file.
  static Expected<ModelFiles> open(const std::filesystem::path& path);
  /// Bytes that outlive every copy of this object and every model loaded from it.
  ModelFiles(std::string name, std::vector<ModelFile> in_memory);

  const std::string& name() const { return name_; }    // of the folder, or of the file
  const std::string& where() const { return where_; }  // for people
  const std::vector<ModelFile>& all() const { return files_; }
  const ModelFile* find(std::string_view name) const;  // null: not there
  /// The GGUF file when this is one; otherwise null.
  const ModelFile* gguf() const;

  /// Keeps the bytes alive; what a ModelWeights holds.
  const std::shared_ptr<WeightStorage>& storage() const { return storage_; }

 private:
  ModelFiles() = default;

  std::string name_;
  std::string where_;
  std::vector<ModelFile> files_;
  std::shared_ptr<WeightStorage> storage_;
};

/// A folder, a .gguf file, or the name of a model that comes with the program: "gauntlet-tiny" is
/// part of it, others lie in a folder models/ at or above the working directory or the program.
Expected<ModelFiles> open_model(const std::string& name_or_path);

}  // namespace gauntlet::model::inline files
