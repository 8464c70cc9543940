// How the client's coroutines wait: what failed comes back as a value. Private: it brings Boost
// along.
#pragma once
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace gauntlet::load::inline http {

// GCC 12 destroys twice what a conditional expression under co_await makes: write an if there.
inline constexpr auto kAwait = boost::asio::as_tuple(boost::asio::use_awaitable);

}  // namespace gauntlet::load::inline http
