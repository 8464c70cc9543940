// Sides of several ranks over links (core/ranks/link.h), and what those count while a side runs.
#pragma once
#include <memory>

#include "core/ranks/link.h"
#include "lab/author/counted.h"
#include "lab/author/side.h"

namespace gauntlet::lab::inline author {

/// The ranks over links of their own: made in a side's factory, by all ranks. Links that take no
/// time count what is sent. Claims over others say that latency and rate are declared.
std::shared_ptr<ranks::LinkedGroup> linked(const Ranks& ranks, const ranks::Fabric& fabric = {});

/// "messages": that a rank sends per run.
Count messages_of(const std::shared_ptr<ranks::LinkedGroup>& linked);
/// "sent_kib": what a rank sends per run.
Count sent_kib(const std::shared_ptr<ranks::LinkedGroup>& linked);
/// "between_kib": what of that goes to other hosts.
Count between_kib(const std::shared_ptr<ranks::LinkedGroup>& linked);
/// "wire_ms": how long of a run something was on its way to a rank, by the links' stamps.
Count wire_ms(const std::shared_ptr<ranks::LinkedGroup>& linked);
/// "exposed_ms": how long of that the rank waited for it.
Count exposed_ms(const std::shared_ptr<ranks::LinkedGroup>& linked);
/// "hidden_percent": the share of "wire_ms" in which the rank did something else.
Count hidden_percent(const std::shared_ptr<ranks::LinkedGroup>& linked);

}  // namespace gauntlet::lab::inline author
