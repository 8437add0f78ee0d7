// SPDX-License-Identifier: Apache-2.0
// What memspan-top shows: the members of each job, pool and endpoint, with rates between two looks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "node/counters_reader.h"
#include "top/options.h"

namespace memspan::top {

// Of a second. Values.
struct Rates {
  double calls = 0;
  double bytes = 0;
  double waits = 0;  // share of the time of a thread; more than 1 where several wait
};

struct Row {
  MemberSeen member;
  std::int32_t process = 0;  // 0: none of this host is seen with this rank
  std::string command;
  std::string state;
  CountersSeen counters;
  std::optional<Rates> rates;  // none at the first look, or where calls are not counted
};

struct Group {
  MemberKind kind = MemberKind::kNone;
  std::string name;
  std::int32_t size = 0;
  std::size_t seen = 0;  // members of which a process is seen, also where fewer rows are shown
  std::vector<Row> rows;
};

struct View {
  std::string host;
  std::vector<Group> groups;
};

// Remembers the last look. One thread at a time.
class Viewer {
 public:
  explicit Viewer(std::string only) : only_(std::move(only)) {}
  View look(Order order);

 private:
  struct Before {
    CountersSeen counters;
    Clock::time_point when;
  };
  std::optional<Rates> rates_of(const CountersSeen& now, Clock::time_point when) const;

  const std::string only_;
  CountersReader reader_;
  std::map<std::int32_t, Before> before_;
};

// "PE 3", "rank 3", "endpoint x".
std::string name_of(const Row& row);

}  // namespace memspan::top
