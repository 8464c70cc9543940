#include "load/http/null_server.h"

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <chrono>

#include "load/http/await.h"

namespace gauntlet::load::inline http {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using Clock = std::chrono::steady_clock;
using tcp = asio::ip::tcp;

std::string chunk(const std::string& data) {
  const std::string event = "data: " + data + "\n\n";
  return fmt::format("{:x}\r\n{}\r\n", event.size(), event);
}

/// As long as a real server's.
std::string token_event() {
  return chunk(fmt::format(
      R"({{"id":"cmpl-0123456789abcdef","object":"text_completion","created":1794709000,)"
      R"("model":"null","choices":[{{"index":0,"text":"{}","logprobs":null,)"
      R"("finish_reason":null}}],"usage":null}})",
      Clock::now().time_since_epoch().count()));
}

std::string stream_end(const NullAnswer& answer) {
  std::string text;
  if (answer.has_usage) {
    text += chunk(
        fmt::format(R"({{"choices":[],"usage":{{"prompt_tokens":7,"completion_tokens":{}}}}})",
                    answer.num_tokens));
  }
  if (answer.has_done) text += chunk("[DONE]");
  return text + "0\r\n\r\n";
}

}  // namespace

struct NullServer::State {
  explicit State(Script given) : script(std::move(given)) {}

  asio::awaitable<void> accept() {
    while (true) {
      auto [error, socket] = co_await acceptor.async_accept(kAwait);
      if (error) co_return;
      asio::co_spawn(io, serve(std::move(socket)), asio::detached);
    }
  }

  asio::awaitable<void> serve(tcp::socket socket) {
    boost::system::error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    boost::beast::flat_buffer buffer;
    bool goes_on = true;
    while (goes_on) {
      http::request<http::string_body> request;
      const auto [error, size] = co_await http::async_read(socket, buffer, request, kAwait);
      if (error) co_return;
      const NullAnswer answer = script({.index = next_index++,
                                        .target = std::string(request.target()),
                                        .body = std::move(request.body())});
      // Not one co_await of a choice: GCC 12 destroys what was not chosen, too.
      if (answer.body.empty()) {
        goes_on = co_await stream(socket, answer);
      } else {
        goes_on = co_await say(socket, answer);
      }
    }
  }

  asio::awaitable<bool> say(tcp::socket& socket, const NullAnswer& answer) {
    const std::string text = fmt::format("HTTP/1.1 {} Said\r\nContent-Length: {}\r\n\r\n{}",
                                         answer.status, answer.body.size(), answer.body);
    co_return co_await write(socket, text);
  }

  asio::awaitable<bool> stream(tcp::socket& socket, const NullAnswer& answer) {
    const std::string head =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    if (!co_await write(socket, head)) co_return false;
    asio::steady_timer timer(io);
    const auto interval =
        std::chrono::nanoseconds(static_cast<std::int64_t>(answer.interval_s * 1e9));
    auto due = Clock::now();
    for (std::int64_t i = 0; i < answer.num_tokens; ++i) {
      if (i == answer.cut_after) co_return false;
      if (i == answer.error_after) {
        const std::string fault = chunk(R"({"error":{"message":"a fault in the middle"}})");
        co_return co_await write(socket, fault + "0\r\n\r\n");
      }
      if (answer.interval_s > 0) {
        timer.expires_at(due += interval);
        co_await timer.async_wait(kAwait);
      }
      if (!co_await write(socket, token_event())) co_return false;
    }
    co_return co_await write(socket, stream_end(answer));
  }

  asio::awaitable<bool> write(tcp::socket& socket, std::string text) {
    const auto [error, size] = co_await asio::async_write(socket, asio::buffer(text), kAwait);
    co_return !error;
  }

  Script script;
  asio::io_context io{1};
  tcp::acceptor acceptor{io, {asio::ip::address_v4::loopback(), 0}};
  std::int64_t next_index = 0;
};

NullServer::NullServer(Script script) : state_(std::make_unique<State>(std::move(script))) {
  asio::co_spawn(state_->io, state_->accept(), asio::detached);
  thread_ = std::thread([this] { state_->io.run(); });
}

NullServer::~NullServer() {
  state_->io.stop();
  thread_.join();
}

std::uint16_t NullServer::port() const { return state_->acceptor.local_endpoint().port(); }

}  // namespace gauntlet::load::inline http
