// A part of a coroutine that is done by a worker. Private to the server: it brings Boost along.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <exception>
#include <utility>

#include "server/http/transport.h"
#include "server/http/work_pool.h"

namespace gauntlet::server::inline http {

/// Goes on where it came from once the work is done, or at once where it was not taken; throws what
/// the work does.
template <class Work>
boost::asio::awaitable<WorkPool::Posted> on_worker(WorkPool& workers, WorkPool::Job job,
                                                   const Work& work) {
  const auto executor = co_await boost::asio::this_coro::executor;
  boost::asio::steady_timer done(executor, std::chrono::steady_clock::time_point::max());
  bool is_done = false;  // of this coroutine's strand
  std::exception_ptr fault;
  job.run = [&, executor] {
    try {
      work();
    } catch (...) {
      fault = std::current_exception();
    }
    boost::asio::post(executor, [&] {
      is_done = true;
      done.cancel();
    });
  };
  const WorkPool::Posted posted = workers.post(std::move(job));
  while (posted == WorkPool::Posted::yes && !is_done) co_await done.async_wait(kAwait);
  if (fault) std::rethrow_exception(fault);
  co_return posted;
}

}  // namespace gauntlet::server::inline http
