// SPDX-License-Identifier: Apache-2.0
#include "launcher/stops.h"

#include <fmt/format.h>

#include <csignal>
#include <utility>
#include <vector>

namespace memspan::launcher {
namespace {

constexpr Duration kTogether = std::chrono::milliseconds(200);

MEMSPAN_REMEDY(
    kStopped, "process-stopped",
    "A signal stopped the process: SIGTTOU after output to a terminal with `stty tostop`, "
    "SIGTTIN when it read from /dev/tty, else SIGSTOP.",
    "Run `stty -tostop`, or let PE 0 read its stdin. `kill -CONT PROCESS` continues one, "
    "and Ctrl-C or SIGTERM to oshrun ends the job.");

const char* name_of(int number) {
  switch (number) {
    case SIGTTOU:
      return "SIGTTOU";
    case SIGTTIN:
      return "SIGTTIN";
    case SIGTSTP:
      return "SIGTSTP";
    default:
      return "SIGSTOP";
  }
}

const char* verb(Stops::Tense tense, std::size_t count) {
  if (tense == Stops::Tense::kPast) return count == 1 ? "was" : "were";
  return count == 1 ? "is" : "are";
}

// "PE 0-2 are stopped by SIGTTOU; PE 3 is stopped by SIGSTOP"
std::string describe(const std::map<int, int>& stopped, Stops::Tense tense) {
  std::map<int, std::vector<int>> ranks;  // by signal
  for (const auto& [rank, number] : stopped) ranks[number].push_back(rank);
  std::vector<std::string> parts;
  parts.reserve(ranks.size());
  for (const auto& [number, its] : ranks)
    parts.push_back(fmt::format("PE {} {} stopped by {}", format_ranks(its),
                                verb(tense, its.size()), name_of(number)));
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace

void Stops::note(const Stop& stop) {
  stopped_.erase(stop.rank);
  unsaid_.erase(stop.rank);
  if (stop.number == 0) return;
  stopped_.emplace(stop.rank, stop.number);
  if (stop.number == SIGTSTP) return;
  unsaid_.insert(stop.rank);
  if (deadline_.is_never()) deadline_ = Deadline::after(kTogether);
}

std::string Stops::clause(Tense tense) const {
  return stopped_.empty() ? "" : "; " + describe(stopped_, tense);
}

std::optional<std::string> Stops::take_note() {
  if (!deadline_.has_passed()) return std::nullopt;
  deadline_ = Deadline::never();
  std::map<int, int> news;
  for (const int rank : std::exchange(unsaid_, {})) news.emplace(rank, stopped_.at(rank));
  if (news.empty()) return std::nullopt;
  return describe(news, Tense::kPresent) + kStopped;
}

}  // namespace memspan::launcher
