// Many streams at once against a real server: does every one of them come through, does none wait
// much longer than the others, and is everything given back? serving_streams GAUNTLET STREAMS
// TOKENS [all-at-once]
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "core/random.h"
#include "tests/serving/http_client.h"
#include "tests/serving/server_process.h"
#include "tests/serving/verdict.h"

namespace gauntlet::tests {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMaxPrompt = 16;
constexpr std::uint64_t kIds = 4000;  // of gauntlet-tiny, without the special ones
constexpr double kMostTimesMedian = 3;
constexpr double kMostGrowth = 0.05;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::string body_of(int stream, int tokens) {
  Random random(static_cast<std::uint64_t>(stream));
  std::string ids;
  const std::uint64_t length = 4 + random.next_below(kMaxPrompt - 3);
  for (std::uint64_t i = 0; i < length; ++i) {
    ids += fmt::format("{}{}", i > 0 ? "," : "", random.next_below(kIds));
  }
  return fmt::format(
      R"({{"prompt":[{}],"max_tokens":{},"temperature":1,"seed":{},"ignore_eos":true,"stream":true,)"
      R"("stream_options":{{"include_usage":true}}}})",
      ids, tokens, stream);
}

struct Stream {
  std::unique_ptr<Socket> socket;
  Answer answer;
  double first_token_s = 0;
  double end_s = 0;
  bool is_over = false;
};

enum class Overlap { shown, required };

struct Wave {
  std::vector<Stream> streams;
  double most_running = 0;
  double most_resident_bytes = 0;
};

/// Connects all first, so that their requests come at once.
Wave run_wave(const ServerProcess& server, int count, int tokens) {
  Wave wave;
  wave.streams.resize(static_cast<std::size_t>(count));
  const int poll = epoll_create1(EPOLL_CLOEXEC);
  for (int i = 0; i < count; ++i) {
    Stream& stream = wave.streams[i];
    stream.socket = std::make_unique<Socket>(server.port());
    stream.is_over = !stream.socket->is_open();
    if (stream.is_over) continue;
    epoll_event interest{.events = EPOLLIN, .data = {.u32 = static_cast<std::uint32_t>(i)}};
    epoll_ctl(poll, EPOLL_CTL_ADD, stream.socket->handle(), &interest);
  }
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < count; ++i) {
    wave.streams[i].socket->send(http_request("POST", "/v1/completions", body_of(i, tokens)));
  }
  std::jthread observer([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (const auto state = server.state()) {
        wave.most_running = std::max(wave.most_running, state->num_running);
        wave.most_resident_bytes = std::max(wave.most_resident_bytes, state->resident_bytes);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
  constexpr int kSilence_ms = 600'000;
  std::vector<epoll_event> events(256);
  for (auto left = std::ranges::count(wave.streams, false, &Stream::is_over); left > 0;) {
    const int ready = epoll_wait(poll, events.data(), static_cast<int>(events.size()), kSilence_ms);
    if (ready <= 0) break;
    for (int e = 0; e < ready; ++e) {
      Stream& stream = wave.streams[events[e].data.u32];
      if (stream.is_over) continue;
      const std::string bytes = stream.socket->receive();
      if (stream.first_token_s == 0) stream.first_token_s = seconds_since(begin);
      const bool goes_on = !bytes.empty() && stream.answer.feed(bytes) && !stream.answer.is_done();
      if (goes_on) continue;
      stream.is_over = true;
      stream.end_s = seconds_since(begin);
      epoll_ctl(poll, EPOLL_CTL_DEL, stream.socket->handle(), nullptr);
      --left;
    }
  }
  observer.request_stop();
  observer.join();
  close(poll);
  return wave;
}

bool is_whole(const Stream& stream, int tokens) {
  if (!stream.answer.is_done() || stream.answer.status() != 200) return false;
  const auto read = read_stream(stream.answer.body());
  return read && read->completion_tokens == tokens && read->finish_reason == "length";
}

void judge(const Wave& wave, int tokens, Verdict& verdict) {
  std::vector<double> ends, firsts;
  std::int64_t num_whole = 0;
  for (const Stream& stream : wave.streams) {
    num_whole += is_whole(stream, tokens);
    ends.push_back(stream.end_s);
    firsts.push_back(stream.first_token_s);
  }
  std::ranges::sort(ends);
  std::ranges::sort(firsts);
  const double median = ends[ends.size() / 2];
  verdict.claim(num_whole == std::ssize(wave.streams),
                fmt::format("{} of {} streams brought {} tokens and an end", num_whole,
                            wave.streams.size(), tokens));
  verdict.claim(ends.back() <= kMostTimesMedian * median,
                fmt::format("the slowest stream took {:.2f} s, {:.2f} times the median {:.2f} s",
                            ends.back(), ends.back() / median, median));
  verdict.note(fmt::format("first token: median {:.2f} s, slowest {:.2f} s; {:.0f} tokens/s in all",
                           firsts[firsts.size() / 2], firsts.back(),
                           static_cast<double>(num_whole * tokens) / ends.back()));
}

int run(const std::string& gauntlet, int count, int tokens, Overlap overlap) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);

  const std::int64_t per_stream = (kMaxPrompt + tokens + 15) / 16 * 16;
  // Without the prefix cache, which would keep pages of the first wave: memory shows what is held.
  ServerProcess server(
      gauntlet,
      {"--max-sequences", std::to_string(count + 48), "--max-queue", std::to_string(2 * count),
       "--max-batch-tokens", std::to_string(count + 512), "--kv-tokens",
       std::to_string(count * per_stream), "--prefix-cache", "off", "--drain-timeout", "60"});
  Verdict verdict;
  const auto before = server.wait_until_idle();
  double resident = 0;
  for (const char* name : {"first", "second"}) {
    verdict.note(fmt::format("{} wave: {} streams of {} tokens", name, count, tokens));
    const Wave wave = run_wave(server, count, tokens);
    judge(wave, tokens, verdict);
    const std::string running =
        fmt::format("{} ran at the same time, none preempted", wave.most_running);
    if (overlap == Overlap::required) {
      verdict.claim(wave.most_running == count, running);
    } else {
      verdict.note(running);
    }
    const ServerState after = server.wait_until_idle();
    verdict.claim(
        after.is_idle() && after.preemptions == 0,
        fmt::format("afterwards {} run, {} wait, {} preempted, pages in use: {:.0f}%",
                    after.num_running, after.num_waiting, after.preemptions, after.kv_usage * 100));
    const std::string memory = fmt::format(
        "resident: {:.0f} MB before, {:.0f} MB at most, {:.0f} MB afterwards",
        before.resident_bytes / 1e6, wave.most_resident_bytes / 1e6, after.resident_bytes / 1e6);
    if (kMemoryIsMeasured && resident > 0) {
      verdict.claim(after.resident_bytes <= resident * (1 + kMostGrowth),
                    memory + fmt::format(", {:+.1f}% against the first wave",
                                         (after.resident_bytes / resident - 1) * 100));
    } else {
      verdict.note(memory);
    }
    resident = after.resident_bytes;
  }
  const std::string fault = server.end();
  verdict.claim(fault.empty(), "the server drained with its books balanced" + fault);
  return verdict.exit_code();
}

}  // namespace
}  // namespace gauntlet::tests

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr, "usage: serving_streams GAUNTLET STREAMS TOKENS [all-at-once]\n");
    return 2;
  }
  using gauntlet::tests::Overlap;
  const bool all_at_once = argc > 4 && std::string(argv[4]) == "all-at-once";
  return gauntlet::tests::run(argv[1], std::atoi(argv[2]), std::atoi(argv[3]),
                              all_at_once ? Overlap::required : Overlap::shown);
}
