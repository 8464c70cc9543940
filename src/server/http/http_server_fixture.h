// A server over the fake endpoints, on a port of its own, for tests of the sockets.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "server/http/fake_handler.h"
#include "server/http/http_server.h"
#include "server/http/test_client.h"

namespace gauntlet::server::inline http {

class HttpServerTest : public ::testing::Test {
 protected:
  void start(HttpLimits limits = {}, int threads = 2, double stream_interval_s = 0) {
    auto server = HttpServer::listen({.port = 0,
                                      .threads = threads,
                                      .stream_interval_s = stream_interval_s,
                                      .limits = limits,
                                      .allowed_origins = allowed_origins_,
                                      .log =
                                          [this](std::string_view line) {
                                            const std::lock_guard lock(mutex_);
                                            log_ += std::string(line) + "\n";
                                          }},
                                     handler_);
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    port_ = server_->port();
    thread_ = std::thread([this] { server_->run(Signals::left_alone); });
  }
  void TearDown() override {
    if (!thread_.joinable()) return;
    server_->stop();
    thread_.join();
  }

  std::vector<std::string> allowed_origins_;
  FakeHandler handler_;
  std::mutex mutex_;
  std::string log_;
  std::unique_ptr<HttpServer> server_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

}  // namespace gauntlet::server::inline http
