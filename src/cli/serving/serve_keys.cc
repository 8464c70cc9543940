#include "cli/serving/serve_keys.h"

#include <fmt/format.h>

#include "core/os/files.h"

namespace gauntlet::cli {

Expected<server::ApiKeys> read_keys(const KeyOptions& options) {
  server::ApiKeys keys;
  if (!options.file.empty()) {
    const auto text = read_file(options.file);
    if (!text) return text.error();
    auto parsed = server::ApiKeys::parse(*text, options.file);
    if (!parsed) return parsed.error();
    keys = std::move(*parsed);
  }
  if (!options.key.empty() && !keys.add_default(options.key)) {
    return Error{fmt::format("--api-key is the key of '{}', and {} has that name or that key, too: "
                             "give it once",
                             server::ApiKeys::kDefaultName, options.file),
                 ErrorKind::wrong_use};
  }
  return keys;
}

}  // namespace gauntlet::cli
