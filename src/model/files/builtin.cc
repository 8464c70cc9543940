// Models by name. The program carries gauntlet-tiny as data of its own; whatever else links this
// library finds it in the source tree.
#include <fmt/format.h>

#include <algorithm>

#include "core/os/data_folders.h"
#include "core/text/text.h"
#include "model/files/model_files.h"

// Defined where the files are linked in (cmake/Embed.cmake), null elsewhere.
#define GAUNTLET_EMBEDDED(symbol)                            \
  extern "C" [[gnu::weak]] const std::byte symbol##_begin[]; \
  extern "C" [[gnu::weak]] const std::byte symbol##_end[]
GAUNTLET_EMBEDDED(gauntlet_tiny_config_json);
GAUNTLET_EMBEDDED(gauntlet_tiny_generation_config_json);
GAUNTLET_EMBEDDED(gauntlet_tiny_model_safetensors);
GAUNTLET_EMBEDDED(gauntlet_tiny_tokenizer_json);
GAUNTLET_EMBEDDED(gauntlet_tiny_tokenizer_config_json);
#undef GAUNTLET_EMBEDDED

namespace gauntlet::model::inline files {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBuiltin = "gauntlet-tiny";

bool is_embedded() { return gauntlet_tiny_config_json_begin != nullptr; }

ModelFiles embedded_model() {
  const auto file = [](const char* name, const std::byte* begin, const std::byte* end) {
    return ModelFile{.name = name,
                     .where = fmt::format("built-in {}/{}", kBuiltin, name),
                     .bytes = {begin, static_cast<std::size_t>(end - begin)}};
  };
  return {
      kBuiltin,
      {file("config.json", gauntlet_tiny_config_json_begin, gauntlet_tiny_config_json_end),
       file("generation_config.json", gauntlet_tiny_generation_config_json_begin,
            gauntlet_tiny_generation_config_json_end),
       file("model.safetensors", gauntlet_tiny_model_safetensors_begin,
            gauntlet_tiny_model_safetensors_end),
       file("tokenizer.json", gauntlet_tiny_tokenizer_json_begin, gauntlet_tiny_tokenizer_json_end),
       file("tokenizer_config.json", gauntlet_tiny_tokenizer_config_json_begin,
            gauntlet_tiny_tokenizer_config_json_end)}};
}

std::vector<std::string> known_names(const std::vector<fs::path>& folders) {
  std::vector<std::string> names;
  if (is_embedded()) names.push_back(kBuiltin);
  for (const fs::path& folder : folders) {
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
      if (fs::exists(entry->path() / "config.json", error)) {
        names.push_back(entry->path().filename().string());
      }
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace

Expected<ModelFiles> open_model(const std::string& name_or_path) {
  std::error_code error;
  if (fs::exists(name_or_path, error)) return ModelFiles::open(name_or_path);
  const bool is_name = name_or_path.find('/') == std::string::npos;
  if (!is_name || name_or_path.ends_with(".gguf") || name_or_path.empty()) {
    return Error{.message = fmt::format("there is no model at '{}'", name_or_path)};
  }
  if (is_embedded() && name_or_path == kBuiltin) return embedded_model();
  const std::vector<fs::path> folders = data_folders("models");
  for (const fs::path& folder : folders) {
    if (fs::exists(folder / name_or_path / "config.json", error)) {
      return ModelFiles::open(folder / name_or_path);
    }
  }
  const std::string near = nearest(name_or_path, known_names(folders));
  const std::string advice = near.empty() ? "; give a folder with config.json or a .gguf file"
                                          : fmt::format(", did you mean '{}'?", near);
  return Error{.message = fmt::format("there is no model '{}'{}", name_or_path, advice)};
}

}  // namespace gauntlet::model::inline files
