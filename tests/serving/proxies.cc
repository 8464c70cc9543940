// Requests that smuggle, sent through nginx and through HAProxy in front of the server: does every
// request that the server runs come from the proxy itself, and each once? serving_proxies GAUNTLET
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "server/http/smuggling_variants.h"
#include "tests/serving/http_client.h"
#include "tests/serving/server_process.h"
#include "tests/serving/verdict.h"

namespace gauntlet::tests {
namespace {

constexpr int kSkipped = 77;
constexpr int kPatience_ms = 300;  // for a proxy that waits for more: nothing follows
constexpr const char* kMark = "via-proxy-";

struct Proxy {
  const char* name;
  const char* path;
  /// Into this folder; the command that then runs it in the foreground.
  std::vector<std::string> (*configure)(const TemporaryFolder& folder, int port, int server_port);
};

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

// Both keep connections to the server, so that a request that ends early or late there meets
// another, and both name each request that they send.
std::vector<std::string> configure_nginx(const TemporaryFolder& folder, int port, int server_port) {
  write(folder / "nginx.conf",
        fmt::format(R"(daemon off; master_process off; pid {0}/pid; error_log {0}/error.log;
worker_processes 1; events {{ worker_connections 64; }}
http {{
  access_log off; client_body_temp_path {0}/a; proxy_temp_path {0}/b; fastcgi_temp_path {0}/c;
  uwsgi_temp_path {0}/d; scgi_temp_path {0}/e;
  upstream server {{ server 127.0.0.1:{2}; keepalive 1; }}
  server {{
    listen 127.0.0.1:{1};
    location / {{
      proxy_pass http://server; proxy_http_version 1.1; proxy_request_buffering off;
      proxy_set_header Connection ""; proxy_set_header Host localhost;
      proxy_set_header x-request-id {3}$request_id;
    }}
  }}
}}
)",
                    folder.path().string(), port, server_port, kMark));
  return {"/usr/sbin/nginx", "-p", folder.path().string(), "-c", folder / "nginx.conf"};
}

std::vector<std::string> configure_haproxy(const TemporaryFolder& folder, int port,
                                           int server_port) {
  write(folder / "haproxy.cfg", fmt::format(R"(global
  maxconn 64
defaults
  mode http
  timeout connect 5s
  timeout client 10s
  timeout server 10s
  http-reuse always
  option http-keep-alive
frontend front
  bind 127.0.0.1:{}
  http-request set-header x-request-id {}%[uuid()]
  http-request set-header host localhost
  default_backend back
backend back
  server one 127.0.0.1:{}
)",
                                            port, kMark, server_port));
  return {"/usr/sbin/haproxy", "-db", "-f", folder / "haproxy.cfg"};
}

const Proxy kProxies[] = {{"nginx", "/usr/sbin/nginx", configure_nginx},
                          {"HAProxy", "/usr/sbin/haproxy", configure_haproxy}};

/// All that comes until the other end closes, or is silent for a while.
std::string receive_all(Socket& socket) {
  std::string text;
  pollfd state{.fd = socket.handle(), .events = POLLIN, .revents = 0};
  while (poll(&state, 1, kPatience_ms) > 0) {
    const std::string part = socket.receive();
    if (part.empty()) break;
    text += part;
  }
  return text;
}

bool wait_for(std::uint16_t port) {
  for (int i = 0; i < 200; ++i) {
    if (const auto answer = ask(port, "GET", "/version"); answer && answer->status() == 200) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

/// What the server ran that no proxy sent, or ran twice; its health checks by ask() are named.
std::string check_log(const std::string& log) {
  std::set<std::string> seen;
  std::istringstream lines(log);
  for (std::string text; std::getline(lines, text);) {
    const auto line = nlohmann::json::parse(text, nullptr, false);
    if (!line.is_object() || line.value("path", "").empty()) continue;  // refused as no HTTP
    const std::string id = line.at("request_id");
    if (!id.starts_with(kMark)) return "no proxy sent " + text;
    if (!seen.insert(id).second) return "seen twice: " + text;
  }
  return seen.empty() ? "the server saw nothing" : "";
}

void press_through(const Proxy& proxy, const std::string& gauntlet, Verdict& verdict) {
  ServerProcess server(gauntlet, {});
  const TemporaryFolder folder;
  const auto port = static_cast<std::uint16_t>(20000 + getpid() % 20000 + (proxy.name[0] == 'H'));
  const Program program(proxy.configure(folder, port, server.port()));
  if (!wait_for(port)) return verdict.claim(false, fmt::format("{} never answered", proxy.name));
  int num_sent = 0, num_wrong = 0;
  for (const auto& variant : server::smuggling_variants()) {
    {
      Socket socket(port);
      socket.send(variant.request +
                  "GET /second HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
      receive_all(socket);
    }
    // Whoever comes next on the proxy's connection to the server gets its own answer.
    const auto next = ask(port, "GET", "/version");
    const bool is_right = next && next->status() == 200 &&
                          next->header("x-request-id").starts_with(kMark) &&
                          next->body().find("\"version\"") != std::string::npos;
    if (!is_right) verdict.note(fmt::format("{}: wrong answer after {}", proxy.name, variant.name));
    num_wrong += is_right ? 0 : 1;
    ++num_sent;
  }
  verdict.claim(num_wrong == 0, fmt::format("{}: {} variants, {} followed by a wrong answer",
                                            proxy.name, num_sent, num_wrong));
  const std::string ending = server.end();
  const std::string fault = ending.empty() ? check_log(server.log()) : ending;
  verdict.claim(fault.empty(), fmt::format("{}: the server ran what the proxy sent, each once {}",
                                           proxy.name, fault));
}

int run(const std::string& gauntlet) {
  Verdict verdict;
  int num_found = 0;
  for (const Proxy& proxy : kProxies) {
    if (!std::filesystem::exists(proxy.path)) {
      verdict.note(fmt::format("SKIPPED {}: {} is not there", proxy.name, proxy.path));
      continue;
    }
    ++num_found;
    press_through(proxy, gauntlet, verdict);
  }
  return num_found == 0 ? kSkipped : verdict.exit_code();
}

}  // namespace
}  // namespace gauntlet::tests

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: serving_proxies GAUNTLET\n");
    return 2;
  }
  return gauntlet::tests::run(argv[1]);
}
