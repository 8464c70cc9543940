// Requests whose end two readers could see in different places: each is refused, the connection
// closes, and nothing of what follows is run as a request.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "server/http/fake_handler.h"
#include "server/http/http_server.h"
#include "server/http/test_client.h"
#include "server/http/wire/smuggling_variants.h"

namespace gauntlet::server::inline http {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class Smuggling : public ::testing::TestWithParam<SmugglingVariant> {
 protected:
  Smuggling()
      : server_(std::move(HttpServer::listen({.port = 0, .threads = 1}, handler_).value())),
        thread_([this] { server_->run(Signals::left_alone); }) {}
  ~Smuggling() override {
    server_->stop();
    thread_.join();
  }

  FakeHandler handler_;
  const std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

TEST_P(Smuggling, is_refused_and_nothing_after_it_is_run) {
  Client client(server_->port());
  client.send(GetParam().request + "GET /second HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const std::string answer = client.read_all();  // to the end: the connection was closed
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
  EXPECT_EQ(answer.find("x-request-id"), answer.rfind("x-request-id")) << "one answer";
  EXPECT_EQ(handler_.num_handled, 0);
}

INSTANTIATE_TEST_SUITE_P(Variants, Smuggling, ::testing::ValuesIn(smuggling_variants()),
                         [](const auto& variant) { return std::string(variant.param.name); });

}  // namespace
}  // namespace gauntlet::server::inline http
