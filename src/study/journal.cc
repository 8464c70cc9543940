#include "study/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/os/files.h"

namespace gauntlet::study {
namespace {

using nlohmann::json;

std::string line_of(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace

Expected<Journal> Journal::begin(const std::filesystem::path& path, const json& subject,
                                 std::int64_t started_at) {
  Journal journal;
  journal.path_ = path;
  journal.started_at_ = started_at;
  const std::string first = line_of({{"subject", subject}, {"started_at", started_at}});
  if (const auto written = atomic_write_file(path, first); !written) return written.error();
  return journal;
}

Expected<Journal> Journal::resume(const std::filesystem::path& path, const json& subject) {
  const auto text = read_file(path);
  if (!text) {
    return Error{fmt::format("there is no study to resume: {}", text.error().message),
                 ErrorKind::wrong_use};
  }
  Journal journal;
  journal.path_ = path;
  bool first = true;
  std::size_t whole = 0;  // bytes of the lines that are whole
  for (std::size_t at = 0, end; (end = text->find('\n', at)) != std::string::npos; at = end + 1) {
    const json line = json::parse(text->substr(at, end - at), nullptr, false);
    if (!line.is_object()) break;
    if (first) {
      if (line.value("subject", json()) != subject) {
        return Error{fmt::format("{} belongs to a study of something else, or with other settings: "
                                 "resume it with the same options, or choose another --output",
                                 path.string()),
                     ErrorKind::wrong_use};
      }
      journal.started_at_ = line.value("started_at", std::int64_t{0});
      first = false;
    } else {
      journal.cells_[line.value("cell", "")] = line.value("value", json()).dump();
      journal.seconds_ += line.value("seconds", 0.0);
    }
    whole = end + 1;
  }
  if (first) return Error{path.string() + " is not a study's journal", ErrorKind::wrong_use};
  std::error_code failed;
  if (whole < text->size()) std::filesystem::resize_file(path, whole, failed);
  if (failed) return Error{fmt::format("cannot shorten {}: {}", path.string(), failed.message())};
  return journal;
}

json Journal::at(const std::string& key) const {
  const auto found = cells_.find(key);
  return found == cells_.end() ? json() : json::parse(found->second);
}

std::size_t Journal::count(const json& value) const {
  const std::string text = value.dump();
  return static_cast<std::size_t>(
      std::ranges::count_if(cells_, [&](const auto& cell) { return cell.second == text; }));
}

Expected<void> Journal::append(const std::string& key, const json& value, double seconds) {
  const auto written = write(line_of({{"cell", key}, {"value", value}, {"seconds", seconds}}));
  if (!written) return written;
  seconds_ += seconds;
  cells_[key] = value.dump(-1, ' ', false, json::error_handler_t::replace);
  return {};
}

Expected<void> Journal::write(const std::string& line) const {
  const int file = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  bool ok = file >= 0;
  for (std::size_t done = 0; ok && done < line.size();) {
    const ssize_t count = ::write(file, line.data() + done, line.size() - done);
    if (count < 0 && errno == EINTR) continue;
    ok = count > 0;
    if (ok) done += static_cast<std::size_t>(count);
  }
  ok = ok && fsync(file) == 0;
  const int reason = errno;
  if (file >= 0) close(file);
  if (ok) return {};
  return Error{fmt::format("cannot write to {}: {}", path_.string(), std::strerror(reason))};
}

}  // namespace gauntlet::study
