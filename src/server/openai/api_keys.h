// Who may ask: keys, the accounts they belong to, and the share that each account has in what is
// scarce. Keys are held as digests, so nothing here can show one.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/expected.h"

namespace gauntlet::server::inline openai {

struct Account {
  std::int32_t id = 0;  // as the engine knows it
  std::string name;     // in the log and in metrics; empty: everybody's, where there are no keys
  double share = 1;
};

/// `NAME KEY [SHARE]`.
struct KeyLine {
  std::string name;
  std::string key;
  double share = 1;
  int number = 0;
};
/// One per line, separated by blanks; `#` begins a comment. The error names `where` and the line,
/// never a key.
Expected<std::vector<KeyLine>> read_key_lines(std::string_view text, const std::string& where);

class ApiKeys {
 public:
  static constexpr std::size_t kMaxAccounts = 1000;  // as many values has a label of the metrics
  static constexpr const char* kDefaultName = "default";

  /// An account may have several keys, a line each, with the same share.
  static Expected<ApiKeys> parse(std::string_view text, const std::string& where);

  /// Of the account that is called "default". False where there is one already.
  [[nodiscard]] bool add_default(std::string_view key);

  /// Null: nobody has this key. How long it takes does not tell how much of it was right.
  const Account* find(std::string_view key) const;
  const std::vector<Account>& accounts() const { return accounts_; }
  /// Of all accounts together.
  double shares() const;

 private:
  friend class KeyRing;
  Expected<void> add(std::string_view name, std::string_view key, double share);

  std::vector<Account> accounts_;
  std::map<std::string, std::size_t> by_digest_;  // of a key, its account
};

/// The keys that hold now. From any thread.
class KeyRing {
 public:
  explicit KeyRing(ApiKeys keys) { replace(std::move(keys)); }
  /// Accounts keep their id by their name.
  void replace(ApiKeys keys);
  std::shared_ptr<const ApiKeys> keys() const;

 private:
  mutable std::mutex mutex_;  // of all below
  std::shared_ptr<const ApiKeys> keys_;
  std::map<std::string, std::int32_t> ids_;  // of every name there ever was
};

}  // namespace gauntlet::server::inline openai
