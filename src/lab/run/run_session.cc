#include "lab/run/run_session.h"

#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <set>

#include "core/text/text.h"
#include "lab/records/store.h"

namespace gauntlet::lab::inline run {
namespace {

// Ceilings of a machine change with drivers and neighbours, not with the hour.
constexpr std::int64_t kCeilingsAgeSeconds = std::int64_t{30} * 24 * 3600;

bool is_result_of(const Result& result, const PlanItem& item, const RankSetup& ranks) {
  if (result.id != item.target->id() || result.backend != item.backend) return false;
  if (result.ranks != ranks) return false;
  const auto knobs = Knobs::defaults(item.target->pair.knobs, item.backend)
                         .with(item.target->pair.knobs, item.overrides);
  return knobs && knobs->all() == result.knobs;
}

}  // namespace

RunSession::RunSession(SessionOptions options, MachineInfo machine, std::vector<PlanItem> plan,
                       RunFolder folder, RunRecord record)
    : options_(std::move(options)),
      plan_(std::move(plan)),
      folder_(std::move(folder)),
      record_(std::move(record)) {
  record_.machine = std::move(machine);
  options_.runner.folder = folder_.path();
}

Expected<RunSession> RunSession::start(SessionOptions options, MachineInfo machine,
                                       std::vector<PlanItem> plan) {
  const auto now = std::chrono::system_clock::now();
  RunRecord record{.run_id = make_run_id(now),
                   .started_at = std::chrono::system_clock::to_time_t(now),
                   .command_line = fmt::format("gauntlet {}", fmt::join(options.arguments, " ")),
                   .build = build_info(),
                   .profile = name_of(options.runner.profile)};
  record.arguments = options.arguments;
  auto folder = RunFolder::create(options.artifacts, record.run_id);
  if (!folder) return folder.error();
  RunSession session(std::move(options), std::move(machine), std::move(plan), std::move(*folder),
                     std::move(record));
  if (auto saved = session.folder_.save(session.record_); !saved) return saved.error();
  return session;
}

Expected<RunSession> RunSession::resume(SessionOptions options, MachineInfo machine,
                                        std::vector<PlanItem> plan, RunFolder folder,
                                        RunRecord record) {
  return RunSession(std::move(options), std::move(machine), std::move(plan), std::move(folder),
                    std::move(record));
}

std::optional<Ceilings> RunSession::ceilings_for(BackendKind backend, Runner& runner,
                                                 const SessionEvents& events) {
  for (const Ceilings& known : record_.ceilings) {
    if (known.backend == backend) return known;
  }
  if (without_ceilings_.contains(backend)) return std::nullopt;
  const std::string key = machine_key_of(record_.machine, backend);
  const auto now = static_cast<std::int64_t>(std::time(nullptr));
  std::optional<Ceilings> ceilings = load_ceilings(key);
  if (!ceilings || now - ceilings->measured_at > kCeilingsAgeSeconds) {
    if (events.note) {
      events.note(
          fmt::format("measuring the {} ceilings of {} (kept for 30 days)", name_of(backend), key));
    }
    auto measured = runner.measure_ceilings(backend, {});
    if (!measured) {
      if (events.note) events.note(measured.error().message);
      without_ceilings_.insert(backend);
      return std::nullopt;
    }
    ceilings = *measured;
    if (auto saved = save_ceilings(*ceilings); !saved && events.note) {
      events.note(saved.error().message);
    }
  } else if (events.note) {
    events.note(fmt::format("{} ceilings of {} measured {}", name_of(backend), key,
                            format_age(now - ceilings->measured_at)));
  }
  record_.ceilings.push_back(*ceilings);
  return ceilings;
}

void RunSession::keep(const Ceilings& ceilings) {
  for (Ceilings& known : record_.ceilings) {
    if (known.backend != ceilings.backend || known == ceilings) continue;
    known = ceilings;
    // Kept for the next run; a folder that cannot be written was complained of before.
    (void)save_ceilings(ceilings);
  }
}

void RunSession::apply_expectation(Result& result, const SessionEvents& events) {
  if (result.status != Status::passed && result.status != Status::no_gain) return;
  const std::string key = machine_key_of(record_.machine, result.backend);
  if (!expectations_.contains(key)) {
    auto loaded = Expectations::load(options_.expectations, key);
    if (!loaded) {
      if (events.note) events.note(loaded.error().message);
      return;
    }
    if (loaded->empty() && events.note && options_.policy == ExpectationPolicy::check) {
      events.note(
          fmt::format("no expectations are recorded for {}; record this machine's with "
                      "--update-expectations",
                      key));
    }
    expectations_.emplace(key, std::move(*loaded));
  }
  const Expectation* expectation = expectations_.at(key).find(result);
  if (!expectation) return;
  const Comparison comparison =
      compare_with(*expectation, result, provenance_of(record_, result.backend).board);
  if (comparison.verdict != Comparison::Verdict::regressed) {
    if (!comparison.reason.empty()) result.notes.push_back(comparison.reason);
    return;
  }
  if (options_.policy == ExpectationPolicy::check) {
    result.status = Status::regressed;
    result.reason = comparison.reason;
  } else {
    result.notes.push_back("accepted: " + comparison.reason);
  }
}

Expected<void> RunSession::update_expectations() {
  if (options_.policy == ExpectationPolicy::check) return {};
  std::set<std::string> changed;
  for (const Result& result : record_.results) {
    const std::string key = machine_key_of(record_.machine, result.backend);
    const auto expectations = expectations_.find(key);
    if (expectations == expectations_.end()) continue;
    const Expectation* known = expectations->second.find(result);
    const Provenance provenance = provenance_of(record_, result.backend);
    const bool regressed = known && compare_with(*known, result, provenance.board).verdict ==
                                        Comparison::Verdict::regressed;
    if (options_.policy == ExpectationPolicy::accept_regressions && !regressed) continue;
    // The program changed, not the board: what other boards recorded no longer holds.
    using Others = Expectations::OtherBoards;
    expectations->second.record(
        result, provenance,
        options_.policy == ExpectationPolicy::accept_regressions ? Others::drop : Others::keep);
    changed.insert(key);
  }
  for (const std::string& key : changed) {
    if (auto saved = expectations_.at(key).save(options_.expectations); !saved) return saved;
  }
  return {};
}

Expected<void> RunSession::run(const SessionEvents& events) {
  Runner runner(options_.runner, record_.machine);
  const auto begin = std::chrono::steady_clock::now();
  const int count = static_cast<int>(plan_.size());
  const auto interrupted = [&] {
    return options_.runner.interrupt && options_.runner.interrupt->load();
  };
  for (int index = 0; index < count; ++index) {
    const PlanItem& item = plan_[static_cast<std::size_t>(index)];
    const RankSetup ranks = ranks_of(options_.runner, item.backend);
    const bool done = std::ranges::any_of(
        record_.results, [&](const Result& r) { return is_result_of(r, item, ranks); });
    if (done) continue;
    const double elapsed =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (options_.suite_timeout_s > 0 && elapsed > options_.suite_timeout_s) {
      if (events.note) {
        events.note(fmt::format("the suite's time of {:.0f} s is over; go on with --resume {}",
                                options_.suite_timeout_s, record_.run_id));
      }
      incomplete_ = true;
      break;
    }
    // Ranks share the CPUs of this machine, and cannot be faster together than these are.
    const BackendKind bounded_by =
        item.backend == BackendKind::ranks ? BackendKind::cpu : item.backend;
    const bool wanted = options_.ceilings == CeilingsPolicy::use &&
                        (bounded_by == BackendKind::cpu || !record_.machine.gpus.empty());
    auto ceilings = wanted ? ceilings_for(bounded_by, runner, events) : std::nullopt;
    Result result = runner.run(item, ceilings, [&](const RunProgress& progress) {
      if (events.progress) events.progress(item, index, count, progress);
    });
    if (ceilings) keep(*ceilings);
    if (interrupted()) {
      incomplete_ = true;
      break;
    }
    apply_expectation(result, events);
    record_.results.push_back(std::move(result));
    if (auto saved = folder_.save(record_); !saved) return saved;
    if (events.finished) events.finished(record_.results.back(), index, count);
  }
  if (auto updated = update_expectations(); !updated) return updated;
  if (auto saved = folder_.save(record_); !saved) return saved;
  if (auto saved = folder_.save_reports(record_); !saved) return saved;
  auto store = RunStore::open(options_.artifacts);
  if (!store) return store.error();
  return store->put(record_);
}

}  // namespace gauntlet::lab::inline run
