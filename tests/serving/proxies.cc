// Requests that smuggle, sent to the server alone and through nginx and HAProxy in front of it: is
// each refused, does every request that the server runs come from the proxy itself, and each once?
//   serving_proxies GAUNTLET TOOLS
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "server/http/wire/smuggling_variants.h"
#include "tests/serving/http_client.h"
#include "tests/serving/server_process.h"
#include "tests/serving/verdict.h"
#include "tests/tools.h"

namespace gauntlet::tests {
namespace {

constexpr int kSkipped = 77;
constexpr int kFewestVariants = 40;
constexpr int kPatience_ms = 300;  // for a proxy that waits for more: nothing follows
constexpr const char* kMark = "via-proxy-";

struct Proxy {
  const char* program;
  /// Into this folder; the arguments that then run it in the foreground.
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
  return {"-p", folder.path().string(), "-e", folder / "error.log", "-c", folder / "nginx.conf"};
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
  return {"-db", "-f", folder / "haproxy.cfg"};
}

const Proxy kProxies[] = {{"nginx", configure_nginx}, {"haproxy", configure_haproxy}};

/// What came back for one variant and the request after it.
struct Heard {
  std::string text;
  bool is_closed = false;

  /// 0 where there is none, as in nginx's answer to a request line without a version.
  int status() const {
    return text.starts_with("HTTP/1.") && text.size() > 12 ? std::stoi(text.substr(9, 3)) : 0;
  }
  /// Only the server gives its answers an id.
  bool is_by_server() const { return text.find("x-request-id: ") != std::string::npos; }
  int num_answers() const {
    int count = 0;
    for (std::size_t at = 0; (at = text.find("x-request-id: ", at)) != text.npos; ++at) ++count;
    return count;
  }
  /// As the client sees it: a proxy may make a sound request of it and pass that on.
  std::string fate() const {
    if (!is_by_server())
      return status() == 0 ? "closed by proxy" : fmt::format("{} by proxy", status());
    const bool is_refused = text.find("this is not HTTP") != std::string::npos;
    return is_refused ? "400 by server" : fmt::format("mended, {}", status());
  }
};

/// All that comes until the other end closes, or is silent for a while.
Heard send_variant(std::uint16_t port, const server::SmugglingVariant& variant) {
  Socket socket(port);
  socket.send(variant.request + "GET /second/" + variant.name +
              " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  Heard heard;
  pollfd state{.fd = socket.handle(), .events = POLLIN, .revents = 0};
  while (!heard.is_closed && poll(&state, 1, kPatience_ms) > 0) {
    const std::string part = socket.receive();
    heard.text += part;
    heard.is_closed = part.empty();
  }
  return heard;
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

/// By variant, one column for each way to the server.
using Table = std::map<std::string, std::vector<std::string>>;

/// What the server ran that no proxy sent, or ran twice.
std::string check_log(const std::string& log) {
  std::set<std::string> ids, seconds;
  std::istringstream lines(log);
  for (std::string text; std::getline(lines, text);) {
    const auto line = nlohmann::json::parse(text, nullptr, false);
    const std::string path = line.is_object() ? line.value("path", "") : "";
    if (path.empty()) continue;  // refused as no HTTP
    const std::string id = line.at("request_id");
    if (!id.starts_with(kMark)) return "no proxy sent " + text;
    if (!ids.insert(id).second) return "seen twice: " + text;
    if (path.starts_with("/second/") && !seconds.insert(path).second) return "run twice: " + text;
  }
  return ids.empty() ? "the server saw nothing" : "";
}

/// Each is refused with 400, the connection closes, and nothing is run.
void press_directly(const std::string& gauntlet, Verdict& verdict, Table& table) {
  ServerProcess server(gauntlet, {});
  int num_refused = 0;
  for (const auto& variant : server::smuggling_variants()) {
    const Heard heard = send_variant(server.port(), variant);
    const bool is_refused = heard.status() == 400 && heard.is_closed && heard.num_answers() == 1;
    num_refused += is_refused ? 1 : 0;
    table[variant.name].push_back(
        is_refused ? "400, closed"
                   : fmt::format("{}, {} answers", heard.status(), heard.num_answers()));
  }
  const std::size_t num_variants = server::smuggling_variants().size();
  verdict.claim(num_refused >= kFewestVariants && num_refused == static_cast<int>(num_variants),
                fmt::format("directly: {} of {} variants get 400 and a closed connection",
                            num_refused, num_variants));
  const std::string ending = server.end();
  verdict.claim(ending.empty() && server.log().find("/second") == std::string::npos &&
                    server.log().find("/inner") == std::string::npos,
                "directly: no request behind or within one of them is run " + ending);
}

void press_through(const Proxy& proxy, std::vector<std::string> command,
                   const std::string& gauntlet, Verdict& verdict, Table& table) {
  ServerProcess server(gauntlet, {});
  const TemporaryFolder folder;
  const auto port = static_cast<std::uint16_t>(20000 + getpid() % 12000 + (&proxy - kProxies));
  for (const auto& argument : proxy.configure(folder, port, server.port())) {
    command.push_back(argument);
  }
  const Program program(command);
  if (!wait_for(port)) return verdict.claim(false, fmt::format("{} never answered", proxy.program));
  int num_wrong = 0, num_mended = 0;
  for (const auto& variant : server::smuggling_variants()) {
    const Heard heard = send_variant(port, variant);
    table[variant.name].push_back(heard.fate());
    num_mended += heard.fate().starts_with("mended") ? 1 : 0;
    // Whoever comes next on the proxy's connection to the server gets its own answer.
    const auto next = ask(port, "GET", "/version");
    const bool is_right = next && next->status() == 200 &&
                          next->header("x-request-id").starts_with(kMark) &&
                          next->body().find("\"version\"") != std::string::npos;
    if (!is_right) {
      verdict.note(fmt::format("{}: wrong answer after {}", proxy.program, variant.name));
    }
    num_wrong += is_right ? 0 : 1;
  }
  verdict.claim(
      num_wrong == 0,
      fmt::format("{}: after {} variants the next client got its own answer, after {} not",
                  proxy.program, server::smuggling_variants().size() - num_wrong, num_wrong));
  const int num_refused = static_cast<int>(server::smuggling_variants().size()) - num_mended;
  verdict.claim(num_refused >= kFewestVariants,
                fmt::format("{}: {} variants refused, {} made sound by the proxy and passed on",
                            proxy.program, num_refused, num_mended));
  const std::string ending = server.end();
  const std::string fault = ending.empty() ? check_log(server.log()) : ending;
  verdict.claim(fault.empty(), fmt::format("{}: the server ran what the proxy sent, each once {}",
                                           proxy.program, fault));
}

void print(const Table& table, const std::string& heading) {
  fmt::print("\n{}\n", heading);
  for (const auto& variant : server::smuggling_variants()) {
    fmt::print("{:<40}", variant.name);
    for (const auto& cell : table.at(variant.name)) fmt::print(" {:<16}", cell);
    fmt::print("\n");
  }
}

int run(const std::string& gauntlet, const std::string& tools) {
  Verdict verdict;
  Table table;
  std::string heading = fmt::format("{:<40} {:<16}", "variant", "directly");
  press_directly(gauntlet, verdict, table);
  bool is_missing = false;
  for (const Proxy& proxy : kProxies) {
    const auto command = tool_command(tools, proxy.program);
    if (command.empty()) {
      verdict.note(
          fmt::format("SKIPPED {}: it is neither installed nor in {} (tools/setup.sh test)",
                      proxy.program, tools));
      is_missing = true;
      continue;
    }
    heading += fmt::format(" {:<16}", proxy.program);
    press_through(proxy, command, gauntlet, verdict, table);
  }
  print(table, heading);
  return verdict.exit_code() == 0 && is_missing ? kSkipped : verdict.exit_code();
}

}  // namespace
}  // namespace gauntlet::tests

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: serving_proxies GAUNTLET TOOLS\n");
    return 2;
  }
  return gauntlet::tests::run(argv[1], argv[2]);
}
