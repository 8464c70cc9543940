// The same server behind TLS, with a certificate made for the test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <chrono>
#include <thread>

#include "server/http/fake_handler.h"
#include "server/http/http_server.h"
#include "server/http/test_certificate.h"
#include "server/http/test_client.h"

namespace gauntlet::server::inline http {
namespace {

using ::testing::HasSubstr;

class TlsClient {
 public:
  explicit TlsClient(std::uint16_t port)
      : socket_(port), context_(SSL_CTX_new(TLS_client_method())), ssl_(SSL_new(context_)) {
    SSL_set_fd(ssl_, socket_.handle());
    EXPECT_EQ(SSL_connect(ssl_), 1);
  }
  ~TlsClient() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
  }
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  void send(const std::string& text) {
    EXPECT_EQ(SSL_write(ssl_, text.data(), static_cast<int>(text.size())), std::ssize(text));
  }
  std::string read_until(const std::string& end) {
    std::string text;
    char buffer[4096];
    while (text.find(end) == std::string::npos) {
      const int count = SSL_read(ssl_, buffer, sizeof(buffer));
      if (count <= 0) break;
      text.append(buffer, static_cast<std::size_t>(count));
    }
    return text;
  }

 private:
  Client socket_;
  SSL_CTX* context_;
  SSL* ssl_;
};

class TlsTest : public ::testing::Test {
 protected:
  TlsTest() {
    auto server = HttpServer::listen({.port = 0,
                                      .limits = {.header_bytes = 8000},
                                      .tls_certificate = certificate_.path(),
                                      .tls_key = certificate_.key_path()},
                                     handler_);
    server_ = std::move(server.value());
    thread_ = std::thread([this] { server_->run(Signals::left_alone); });
  }
  ~TlsTest() override {
    server_->stop();
    thread_.join();
  }

  Certificate certificate_;
  FakeHandler handler_;
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

TEST_F(TlsTest, answers_several_requests_and_refuses_what_is_too_large) {
  TlsClient client(server_->port());
  for (const char* path : {"/a", "/b"}) {
    client.send("GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_THAT(client.read_until("GET " + std::string(path)), HasSubstr("200 OK"));
  }
  client.send("GET / HTTP/1.1\r\nA: " + std::string(9000, 'a'));
  EXPECT_THAT(client.read_until("\x01never"), HasSubstr("HTTP/1.1 431"));
}

TEST_F(TlsTest, abandons_the_reply_of_a_client_that_goes_away) {
  {
    TlsClient client(server_->port());
    client.send("GET /hang HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_THAT(client.read_until("data: 1"), HasSubstr("chunked"));
  }
  for (int i = 0; i < 500 && handler_.num_abandoned == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(handler_.num_abandoned, 1);
}

TEST_F(TlsTest, survives_a_client_that_speaks_plainly) {
  Client plain(server_->port());
  plain.send("GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(plain.read_all().find("HTTP"), std::string::npos);
  TlsClient client(server_->port());
  client.send("GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(client.read_until("GET /a"), HasSubstr("200 OK"));
}

}  // namespace
}  // namespace gauntlet::server::inline http
