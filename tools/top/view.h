// SPDX-License-Identifier: Apache-2.0
// What memspan-top shows: the members of each job, pool and endpoint, with rates between two looks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/status.h"
#include "top/options.h"
#include "top/process_reader.h"

namespace memspan::top {

// Totals of a process's whole life, if no earlier look gives a rate; or rates a second.
enum class Measure { kTotals, kRates };

// Values.
struct Amounts {
  double calls = 0;
  double bytes = 0;
  double waits = 0;  // seconds of all threads; as a rate more than 1 where several wait
};

// The time in waits. Includes unfinished waits if calls are counted. A wait that ended during the
// read may be counted twice or not at all.
double waited_seconds(const CountersSeen& seen);

struct Row {
  MemberSeen member;
  std::int32_t process = 0;  // 0: none of this host is seen with this rank
  std::string command;
  std::string state;
  CountersSeen counters;
  std::optional<Amounts> rates;  // none at the first look, or where calls are not counted
};

struct Group {
  MemberKind kind = MemberKind::kNone;
  std::string name;
  std::int32_t size = 0;  // members of a job; in a pool the ranks that there is room for
  std::size_t seen = 0;   // members of which a process is seen, also where fewer rows are shown
  std::vector<Row> rows;
};

struct View {
  std::string host;
  double time = 0;  // seconds since 1970
  Measure measure = Measure::kTotals;
  std::vector<Group> groups;
  // Without groups: the reason, and the groups that would be shown without a name.
  Status nothing = Status::ok();
  std::vector<std::string> others;
};

// Remembers the last look, and members of pools that have gone. One thread at a time.
class Viewer {
 public:
  explicit Viewer(std::string only) : only_(std::move(only)) {}
  View look(Order order);

 private:
  struct Before {
    CountersSeen counters;
    Clock::time_point when;
  };
  using Groups = std::map<std::pair<MemberKind, std::string>, Group>;
  std::optional<Amounts> rates_of(const CountersSeen& now, Clock::time_point when) const;
  void add_gone_members(Groups& groups);

  const std::string only_;
  ProcessReader reader_;
  std::map<std::int32_t, Before> before_;
  // By the pool's name and the rank. Nothing but this view knows of them: no process of a pool
  // notes its members, as the node segment of a job does.
  std::map<std::string, std::map<std::int32_t, Row>> pools_;
};

// "3", or "-" for an endpoint.
std::string name_of(const Row& row);
// "job job-5bd0e1f65b1c9d35"
std::string name_of(const Group& group);
// None where they are not counted, or no rate is known yet.
std::optional<Amounts> amounts_of(const Row& row, Measure measure);

}  // namespace memspan::top
