#include "server/openai/api_keys.h"

#include <fmt/format.h>
#include <openssl/sha.h>

#include <algorithm>
#include <charconv>
#include <numeric>

namespace gauntlet::server::inline openai {
namespace {

constexpr std::size_t kMaxName = 64;
constexpr std::size_t kMaxKey = 512;
constexpr double kMaxShare = 1000;
constexpr double kMinShare = 0.001;
constexpr std::string_view kBlank = " \t\r";

std::string digest_of(std::string_view key) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = line.find_first_not_of(kBlank); at != line.npos;) {
    const std::size_t end = std::min(line.find_first_of(kBlank, at), line.size());
    if (line[at] == '#') break;
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kBlank, end);
  }
  return words;
}

bool is_name(std::string_view text) {
  return text.size() <= kMaxName && std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '-' || c == '_';
         });
}

bool is_key(std::string_view text) {
  return text.size() <= kMaxKey &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

}  // namespace

Expected<std::vector<KeyLine>> read_key_lines(std::string_view text, const std::string& where) {
  std::vector<KeyLine> lines;
  int number = 0;
  const auto wrong = [&](const std::string& why) {
    return Error{fmt::format("{}:{}: {}", where, number, why), ErrorKind::wrong_use};
  };
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const auto words = words_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (words.empty()) continue;
    if (words.size() < 2 || words.size() > 3) {
      return wrong("a line is a name, a key and perhaps a share, separated by blanks");
    }
    if (!is_name(words[0])) {
      return wrong(fmt::format(
          "a name has at most {} letters, digits, dots, dashes and underscores", kMaxName));
    }
    if (!is_key(words[1])) {
      return wrong(fmt::format("a key has at most {} characters of ASCII", kMaxKey));
    }
    KeyLine line{.name = std::string(words[0]), .key = std::string(words[1]), .number = number};
    if (words.size() == 3) {
      const char* const last = words[2].data() + words[2].size();
      const auto [at, failed] = std::from_chars(words[2].data(), last, line.share);
      if (failed != std::errc() || at != last || !(line.share >= kMinShare) ||
          line.share > kMaxShare) {
        return wrong(fmt::format("a share is a number between {} and {}", kMinShare, kMaxShare));
      }
    }
    lines.push_back(std::move(line));
  }
  if (lines.empty()) {
    return Error{fmt::format("{} has no key: a line is a name, a key and perhaps a share", where),
                 ErrorKind::wrong_use};
  }
  return lines;
}

Expected<void> ApiKeys::add(std::string_view name, std::string_view key, double share) {
  const auto [place, is_new_key] = by_digest_.try_emplace(digest_of(key), accounts_.size());
  if (!is_new_key) return Error{"this key was given before", ErrorKind::wrong_use};
  const auto same = std::ranges::find(accounts_, name, &Account::name);
  if (same != accounts_.end()) {
    if (same->share != share) {
      return Error{fmt::format("'{}' has the share {} on another line", name, same->share),
                   ErrorKind::wrong_use};
    }
    place->second = static_cast<std::size_t>(same - accounts_.begin());
    return {};
  }
  if (accounts_.size() == kMaxAccounts) {
    return Error{fmt::format("there are more than {} names", kMaxAccounts), ErrorKind::wrong_use};
  }
  accounts_.push_back({.name = std::string(name), .share = share});
  return {};
}

Expected<ApiKeys> ApiKeys::parse(std::string_view text, const std::string& where) {
  const auto lines = read_key_lines(text, where);
  if (!lines) return lines.error();
  ApiKeys keys;
  for (const KeyLine& line : *lines) {
    if (auto added = keys.add(line.name, line.key, line.share); !added) {
      return Error{fmt::format("{}:{}: {}", where, line.number, added.error().message),
                   ErrorKind::wrong_use};
    }
  }
  return keys;
}

bool ApiKeys::add_default(std::string_view key) {
  if (std::ranges::find(accounts_, kDefaultName, &Account::name) != accounts_.end()) return false;
  return static_cast<bool>(add(kDefaultName, key, 1));
}

const Account* ApiKeys::find(std::string_view key) const {
  const auto found = by_digest_.find(digest_of(key));
  return found == by_digest_.end() ? nullptr : &accounts_[found->second];
}

double ApiKeys::shares() const {
  return std::accumulate(accounts_.begin(), accounts_.end(), 0.0,
                         [](double sum, const Account& one) { return sum + one.share; });
}

void KeyRing::replace(ApiKeys keys) {
  const std::lock_guard lock(mutex_);
  for (Account& account : keys.accounts_) {
    // From 1 on: 0 is who needs no key.
    account.id =
        ids_.try_emplace(account.name, static_cast<std::int32_t>(ids_.size()) + 1).first->second;
  }
  keys_ = std::make_shared<const ApiKeys>(std::move(keys));
}

std::shared_ptr<const ApiKeys> KeyRing::keys() const {
  const std::lock_guard lock(mutex_);
  return keys_;
}

}  // namespace gauntlet::server::inline openai
