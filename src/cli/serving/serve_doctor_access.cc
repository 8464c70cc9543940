// The checks of doctor --serve that are about who can reach the server: address, key, certificate.
#include <fmt/format.h>
#include <netdb.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <set>

#include "cli/serving/serve_doctor.h"
#include "core/os/files.h"

namespace gauntlet::cli {
namespace {

using lab::doctor::Finding;
using Level = Finding::Level;

constexpr int kFirstOpenPort = 1024;  // where the system does not say
constexpr std::size_t kKeyCharacters = 16;
constexpr std::size_t kKeyDifferentCharacters = 8;
constexpr int kSoonDays = 14;
constexpr const char* kMakeKey = "GAUNTLET_API_KEY=$(openssl rand -hex 24)";

struct AddressFree {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, AddressFree>;

Finding server_finding(const char* name, Level level, std::string reason, std::string fix = "") {
  return {.area = "serve",
          .name = name,
          .level = level,
          .reason = std::move(reason),
          .fix = std::move(fix)};
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

/// 0 when this process can listen there; else errno.
int try_to_listen(const addrinfo& address) {
  const int handle = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (handle < 0) return errno;
  const int on = 1;
  setsockopt(handle, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  int fault = 0;
  if (bind(handle, address.ai_addr, address.ai_addrlen) != 0 || listen(handle, 1) != 0) {
    fault = errno;
  }
  close(handle);
  return fault;
}

Finding check_port(const server::HttpServerConfig& http) {
  const std::string where = fmt::format("{} port {}", http.host, http.port);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICHOST;  // as serve takes it
  addrinfo* list = nullptr;
  const int wrong =
      getaddrinfo(http.host.c_str(), std::to_string(http.port).c_str(), &hints, &list);
  const Addresses addresses(list);
  if (wrong != 0) {
    return server_finding("address", Level::fail,
                          fmt::format("'{}' is no address ({})", http.host, gai_strerror(wrong)),
                          "host = \"127.0.0.1\", or an address of this machine");
  }
  const int fault = try_to_listen(*addresses);
  if (fault == 0) return server_finding("address", Level::ok, where + " is free");
  if (fault == EADDRINUSE) {
    return server_finding(
        "address", Level::fail, where + " is taken by another program",
        fmt::format("see who: ss -ltnp 'sport = :{}'; or choose another port", http.port));
  }
  if (fault == EACCES) {
    return server_finding("address", Level::fail,
                          fmt::format("{} needs rights that this user lacks", where),
                          fmt::format("a port from {} on, or AmbientCapabilities="
                                      "CAP_NET_BIND_SERVICE in the unit",
                                      kFirstOpenPort));
  }
  return server_finding("address", Level::fail, fmt::format("{}: {}", where, std::strerror(fault)),
                        "host = \"127.0.0.1\", or an address of this machine");
}

bool can_be_guessed(std::string_view key) {
  return key.size() < kKeyCharacters ||
         std::set<char>(key.begin(), key.end()).size() < kKeyDifferentCharacters;
}

Finding check_key(const ServePlan& plan) {
  const bool open = !is_loopback(plan.http.host);
  const std::string& key = plan.keys.key;
  if (can_be_guessed(key)) {
    const std::set<char> different(key.begin(), key.end());
    return server_finding("key", open ? Level::fail : Level::warn,
                          fmt::format("the key has {} characters, {} of them different: it can be "
                                      "guessed",
                                      key.size(), different.size()),
                          kMakeKey);
  }
  return server_finding("key", Level::ok, fmt::format("a key of {} characters", key.size()));
}

/// A secret that others can read is none.
Finding check_readers(const char* name, const std::string& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0) {
    return server_finding(name, Level::unknown, file + " cannot be looked at");
  }
  if ((status.st_mode & (S_IRGRP | S_IROTH)) == 0) {
    return server_finding(name, Level::ok, file + " is read by its owner alone");
  }
  return server_finding(name, Level::warn, file + " can be read by others", "chmod 600 " + file);
}

std::vector<Finding> check_keys_file(const ServePlan& plan) {
  const std::string& file = plan.keys.file;
  const auto keys = read_keys(plan.keys);
  if (!keys) {
    return {
        server_finding("keys", Level::fail, keys.error().message,
                       "a file with lines of NAME KEY [SHARE] that the server's user can read")};
  }
  std::string weak;
  const auto text = read_file(file);
  const auto lines = server::read_key_lines(text ? *text : "", file);
  for (const server::KeyLine& line : lines ? *lines : std::vector<server::KeyLine>()) {
    if (can_be_guessed(line.key)) weak += (weak.empty() ? "" : ", ") + line.name;
  }
  std::vector<Finding> findings;
  if (weak.empty()) {
    findings.push_back(server_finding(
        "keys", Level::ok, fmt::format("{} names in {}", keys->accounts().size(), file)));
  } else {
    findings.push_back(server_finding(
        "keys", is_loopback(plan.http.host) ? Level::warn : Level::fail,
        "keys that can be guessed: " + weak, "longer ones, as openssl rand -hex 24 makes them"));
  }
  findings.push_back(check_readers("keys file", file));
  return findings;
}

std::vector<Finding> check_all_keys(const ServePlan& plan) {
  std::vector<Finding> findings;
  if (!plan.keys.any()) {
    const bool open = !is_loopback(plan.http.host);
    findings.push_back(open ? server_finding("key", Level::fail,
                                             "other machines can ask, and no key is set", kMakeKey)
                            : server_finding("key", Level::warn,
                                             "no key is set: whoever is on this machine can ask",
                                             kMakeKey));
  }
  if (!plan.keys.key.empty()) findings.push_back(check_key(plan));
  if (!plan.keys.file.empty()) {
    for (Finding& one : check_keys_file(plan)) findings.push_back(std::move(one));
  }
  return findings;
}

struct CertificateFree {
  void operator()(X509* held) const { X509_free(held); }
};
struct PrivateKeyFree {
  void operator()(EVP_PKEY* held) const { EVP_PKEY_free(held); }
};
struct BioFree {
  void operator()(BIO* held) const { BIO_free(held); }
};
using Bio = std::unique_ptr<BIO, BioFree>;

Bio memory_of(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

Finding check_dates(const X509& certificate, const std::string& file) {
  int days = 0;
  int seconds = 0;
  const bool begun = X509_cmp_current_time(X509_get0_notBefore(&certificate)) < 0;
  const bool known =
      ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(&certificate)) == 1;
  if (!known) {
    return server_finding("certificate", Level::fail, file + " has no date that can be read",
                          "make a new one");
  }
  if (!begun) {
    return server_finding("certificate", Level::fail, file + " is not valid yet",
                          "look at this machine's clock, or wait");
  }
  if (days < 0 || seconds < 0) {
    return server_finding("certificate", Level::fail,
                          fmt::format("{} ended {} days ago", file, -days), "renew it");
  }
  return server_finding("certificate", days < kSoonDays ? Level::warn : Level::ok,
                        fmt::format("{} is good for {} more days", file, days),
                        days < kSoonDays ? "renew it" : "");
}

Finding check_certificate(const server::HttpServerConfig& http) {
  const std::string& file = http.tls_certificate;
  const auto text = read_file(file);
  if (!text) {
    return server_finding("certificate", Level::fail, text.error().message,
                          "a PEM file that the server's user can read");
  }
  const std::unique_ptr<X509, CertificateFree> certificate(
      PEM_read_bio_X509(memory_of(*text).get(), nullptr, nullptr, nullptr));
  if (!certificate) {
    return server_finding("certificate", Level::fail, file + " holds no certificate in PEM",
                          "the chain as PEM, the server's own certificate first");
  }
  const auto key_text = read_file(http.tls_key);
  if (!key_text) {
    return server_finding("certificate", Level::fail, key_text.error().message,
                          "a PEM file that the server's user can read");
  }
  const std::unique_ptr<EVP_PKEY, PrivateKeyFree> key(
      PEM_read_bio_PrivateKey(memory_of(*key_text).get(), nullptr, nullptr, nullptr));
  if (!key || X509_check_private_key(certificate.get(), key.get()) != 1) {
    return server_finding("certificate", Level::fail,
                          fmt::format("{} is not the key of {}", http.tls_key, file),
                          "the key that the certificate was made with, as PEM");
  }
  return check_dates(*certificate, file);
}

Finding check_tls(const server::HttpServerConfig& http) {
  if (http.tls_certificate.empty() != http.tls_key.empty()) {
    return server_finding("certificate", Level::fail, "tls-cert and tls-key go together",
                          "both, or none");
  }
  if (!http.tls_certificate.empty()) return check_certificate(http);
  if (is_loopback(http.host)) {
    return server_finding("certificate", Level::ok, "none, and none is needed on loopback");
  }
  return server_finding("certificate", Level::warn,
                        "other machines can ask, and everything is sent in the clear",
                        "tls-cert and tls-key, or a proxy that has them");
}

}  // namespace

std::vector<Finding> check_access(const ServePlan& plan) {
  std::vector<Finding> findings{check_port(plan.http)};
  for (Finding& one : check_all_keys(plan)) findings.push_back(std::move(one));
  findings.push_back(check_tls(plan.http));
  if (!plan.http.tls_key.empty()) {
    findings.push_back(check_readers("certificate key", plan.http.tls_key));
  }
  return findings;
}

}  // namespace gauntlet::cli
