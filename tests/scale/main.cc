// SPDX-License-Identifier: Apache-2.0
// Measures what a job of many nodes costs, without having them: members as objects in few
// processes, each a node of its own, over the socket carrier and the built-in store.
//
//   scale_simulation [--members N] [--processes N] [--carrier unix|tcp] [--barriers N]
//                    [--finish end|death] [--limit SECONDS] [--check]
//
// It prints a line for each figure. With --check it fails when one is beyond what docs/scale.md
// promises. Exit 77: the machine does not allow as many descriptors.
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "core/environment.h"
#include "core/random.h"
#include "report.h"
#include "resources.h"
#include "store/server.h"
#include "worker.h"

namespace memspan::scale {
namespace {

constexpr int kSkipped = 77;
// What docs/scale.md promises.
constexpr double kMostStart = 10;
constexpr double kMostTold = 3;
constexpr std::uint64_t kMostBytesOfPeer = 4096;
constexpr double kMostBarrierBytes = 4096;
// A sanitizer's own memory would count, too.
#ifdef MEMSPAN_TEST_IS_SANITIZED
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif

int rounds_of(int members) {
  return std::bit_width(static_cast<unsigned>(members - 1));
}

// A member's own descriptors, its connections both ways, and some for the process.
std::uint64_t descriptors_of(int members, int all) {
  constexpr int kOwn = 12;
  return 64 + static_cast<std::uint64_t>(members) *
                  static_cast<std::uint64_t>(kOwn + 4 * rounds_of(all));
}

[[noreturn]] void refuse(const std::string& why) {
  fmt::print(stderr, "scale_simulation: {}\n", why);
  std::exit(2);
}

int number(const std::string& option, const char* text, int least, int most) {
  char* end = nullptr;
  const long value = text == nullptr ? 0 : std::strtol(text, &end, 10);
  if (text == nullptr || end == text || *end != '\0' || value < least || value > most)
    refuse(fmt::format("{} takes a number from {} to {}", option, least, most));
  return static_cast<int>(value);
}

Plan parse(int count, char** arguments) {
  Plan plan;
  std::string carrier = "unix";
  for (int i = 1; i < count; ++i) {
    const std::string option = arguments[i];
    if (option == "--check") {
      plan.is_checked = true;
      continue;
    }
    const char* value = i + 1 < count ? arguments[++i] : nullptr;
    const std::string text = value == nullptr ? "" : value;
    if (option == "--members")
      plan.members = number(option, value, 3, kMostMembers);
    else if (option == "--processes")
      plan.workers = number(option, value, 1, kMostWorkers - 1);
    else if (option == "--barriers")
      plan.barriers = number(option, value, 1, 1 << 20);
    else if (option == "--limit")
      plan.limit_s = number(option, value, 1, 3600);
    else if (option == "--carrier" && (text == "unix" || text == "tcp"))
      carrier = text;
    else if (option == "--finish" && (text == "end" || text == "death"))
      plan.finish = text == "end" ? Finish::kEnd : Finish::kDeath;
    else
      refuse(fmt::format("unknown option or value: {} {}", option, text));
  }
  setenv("MEMSPAN_CARRIER", carrier.c_str(), 1);
  // All members share two cores: what is silent here waits for its turn.
  setenv("MEMSPAN_SILENCE_LIMIT", "60s", 0);
  setenv("MEMSPAN_LOG_LEVEL", "ERROR", 0);
  return plan;
}

struct Process {
  pid_t id;
  int first;
  int last;
};

// The last member alone, when it is to be killed; the others evenly.
std::vector<Process> split(Plan& plan) {
  const int alone = plan.finish == Finish::kDeath ? 1 : 0;
  const int shared = plan.members - alone;
  if (plan.workers == 0) {
    plan.workers = 2;
    while (plan.workers < kMostWorkers - 1 &&
           descriptors_of((shared + plan.workers - 1) / plan.workers, plan.members) >
               most_descriptors())
      ++plan.workers;
  }
  plan.workers = std::min(plan.workers, shared);
  std::vector<Process> processes;
  for (int i = 0; i < plan.workers; ++i)
    processes.push_back({0, shared * i / plan.workers, shared * (i + 1) / plan.workers});
  if (alone != 0) processes.push_back({0, shared, plan.members});
  return processes;
}

template <typename Value>
double most(const Plan& plan, const Report& report, Value value) {
  double highest = 0;
  const int members = plan.members - (plan.finish == Finish::kDeath ? 1 : 0);
  for (int rank = 0; rank < members; ++rank)
    highest = std::max(highest, static_cast<double>(value(report.members[rank])));
  return highest;
}
template <typename Value>
std::uint64_t sum(const Plan& plan, const Report& report, Value value) {
  std::uint64_t all = 0;
  for (int rank = 0; rank < plan.members; ++rank) all += value(report.members[rank]);
  return all;
}

class Judge {
 public:
  explicit Judge(bool is_checked) : is_checked_(is_checked) {}
  void line(const std::string& name, const std::string& value, bool is_kept = true) {
    fmt::print("{:<34} {}{}\n", name, value, is_checked_ && !is_kept ? "   TOO MUCH" : "");
    if (is_checked_ && !is_kept) ++broken_;
  }
  int broken() const { return broken_; }

 private:
  const bool is_checked_;
  int broken_ = 0;
};

void print_connections(Judge& judge, const Plan& plan, const std::string& when,
                       std::uint64_t connections) {
  const auto members = static_cast<std::uint64_t>(plan.members);
  // Twice: where two talk first at the same time, both connect.
  const std::uint64_t bound = 2 * members * static_cast<std::uint64_t>(rounds_of(plan.members));
  judge.line("connections " + when,
             fmt::format("{} ({:.1f} a member, both ends counted)", connections,
                         2.0 * static_cast<double>(connections) / plan.members),
             connections <= bound);
}

int judge(const Plan& plan, const Report& report, std::size_t processes) {
  // Most say only that another one is gone: those that do not come first.
  int failures = 0;
  for (const bool is_cause : {true, false})
    for (int rank = 0; rank < plan.members; ++rank) {
      const MemberReport& its = report.members[rank];
      if (its.failed && (std::strstr(its.why, " is gone") == nullptr) == is_cause &&
          ++failures <= 5)
        fmt::print(stderr, "PE {}: {}\n", rank, its.why);
    }
  if (failures != 0) {
    fmt::print(stderr, "{} of {} members failed\n", failures, plan.members);
    return 1;
  }
  std::uint64_t connected = 0, joined = 0, peak = 0, descriptors = 0;
  for (std::size_t i = 0; i < processes; ++i) {
    const WorkerReport& worker = report.workers[i];
    connected += worker.connected_bytes;
    joined += worker.joined_bytes;
    peak += worker.most_bytes;
    descriptors = std::max(descriptors, worker.descriptors);
  }
  const std::uint64_t added = joined > connected ? joined - connected : 0;
  const auto members = static_cast<std::uint64_t>(plan.members);
  const std::uint64_t of_peer = added / members / (members - 1);
  Judge judge(plan.is_checked);
  const double start =
      most(plan, report, [](const auto& one) { return one.joined; }) - report.begun;
  judge.line("members", fmt::format("{} in {} processes", plan.members, processes));
  judge.line("connected to the store",
             fmt::format("{:.2f} s", most(plan, report, [](const auto& one) {
                                       return one.connected;
                                     }) - report.begun));
  judge.line("start", fmt::format("{:.2f} s", start), start <= kMostStart);
  judge.line("longest text at the store",
             fmt::format("{:.0f} bytes",
                         most(plan, report, [](const auto& one) { return one.text_bytes; })));
  judge.line("memory of a member", fmt::format("{} KiB", added / members / 1024));
  // Where members are few, what each has once would count as its peers'.
  judge.line("memory for each of its peers", fmt::format("{} bytes at most", of_peer),
             of_peer <= kMostBytesOfPeer || plan.members < 200 || kIsSanitized);
  judge.line("memory of all processes, peak", fmt::format("{} MiB", peak >> 20));
  judge.line("descriptors of a process", std::to_string(descriptors));
  print_connections(judge, plan, "after the join",
                    sum(plan, report, [](const auto& one) { return one.connections_joined; }));
  print_connections(judge, plan, "after barriers",
                    sum(plan, report, [](const auto& one) { return one.connections_used; }));
  const double messages = most(plan, report, [&](const auto& one) {
    return static_cast<double>(one.barrier_messages) / plan.barriers;
  });
  // Up to four nodes send to each other directly.
  judge.line("messages to a member, a barrier", fmt::format("{:.2f}", messages),
             messages <= std::max(rounds_of(plan.members), 3));
  const double bytes = most(plan, report, [&](const auto& one) {
    return static_cast<double>(one.barrier_bytes) / plan.barriers;
  });
  judge.line("bytes to a member, a barrier", fmt::format("{:.0f}", bytes),
             bytes <= kMostBarrierBytes);
  const auto barriers = report.members[0].barriers_ended - report.members[0].barriers_begun;
  judge.line("barrier", fmt::format("{:.2f} ms", barriers * 1e3 / plan.barriers));
  const MemberReport& last = report.members[plan.members - 1];
  judge.line("pool join, all but one at once",
             fmt::format("{:.2f} s", most(plan, report, [&](const auto& one) {
                           return &one == &last ? 0 : one.pool_joined - one.pool_begun;
                         })));
  judge.line("pool join of one more", fmt::format("{:.3f} s, known to all after {:.3f} s",
                                                  last.pool_joined - last.pool_begun,
                                                  most(plan, report, [](const auto& one) {
                                                    return one.pool_heard;
                                                  }) - last.pool_begun));
  if (plan.finish == Finish::kEnd) {
    judge.line("end, all at once", fmt::format("{:.2f} s", most(plan, report, [](const auto& one) {
                                                 return one.ended - one.end_begun;
                                               })));
  } else {
    const double told =
        most(plan, report, [](const auto& one) { return one.ended; }) - report.killed.load();
    judge.line("a death is known to all", fmt::format("{:.3f} s", told), told <= kMostTold);
  }
  print_connections(judge, plan, "at the end",
                    sum(plan, report, [](const auto& one) { return one.connections_ended; }));
  return judge.broken() == 0 ? 0 : 1;
}

// A member waits for the words "tcp://HOST:PORT SECRET".
[[noreturn]] void live(const Worker& worker, int words) {
  char text[512] = {};
  if (read(words, text, sizeof text - 1) <= 0) _exit(1);
  const std::string said = text;
  const std::size_t space = said.find(' ');
  StoreAccess store{.endpoint = StoreAddress::parse(said.substr(0, space)).value()};
  store.security = {.kind = StoreSecurity::Kind::kSecret, .secret = said.substr(space + 1)};
  worker.run(store);
  _exit(0);
}

int run(Plan plan) {
  std::vector<Process> processes = split(plan);
  int most_members = 0;
  for (const Process& one : processes) most_members = std::max(most_members, one.last - one.first);
  const Status enough = need_descriptors(std::max(descriptors_of(most_members, plan.members),
                                                  static_cast<std::uint64_t>(plan.members) + 64));
  if (!enough.is_ok()) {
    fmt::print("needs=descriptors: {}\n", enough.message());
    return kSkipped;
  }
  void* const shared =
      mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) refuse("no memory for the report");
  auto& report = *new (shared) Report;
  int ready[2];
  std::vector<int> words;
  if (pipe(ready) != 0) refuse("no pipe");
  for (std::size_t i = 0; i < processes.size(); ++i) {
    int told[2];
    if (pipe(told) != 0) refuse("no pipe");
    Process& one = processes[i];
    one.id = fork();
    if (one.id == 0)
      live({plan, report, report.workers[i], one.first, one.last, ready[1]}, told[0]);
    close(told[0]);
    words.push_back(told[1]);
  }
  close(ready[1]);
  const std::string secret = random_hex(32);
  StoreServerOptions options{.security = {.kind = StoreSecurity::Kind::kSecret, .secret = secret}};
  // All members have one address here, where a host has one each.
  options.admission.per_address = options.admission.in_all;
  options.admission.handshake = from_seconds(plan.limit_s);
  options.patience.hello = from_seconds(plan.limit_s);
  auto server = StoreServer::listen({"127.0.0.1", 0}, std::move(options));
  if (!server.is_ok()) refuse(server.status().message());
  report.begun = now_s();
  const std::string said = fmt::format("{} {}", (*server)->endpoint().to_string(), secret);
  for (const int told : words)
    if (write(told, said.data(), said.size()) < 0) refuse("a process of the simulation ended");
  char byte = 0;
  if (plan.finish == Finish::kDeath && read(ready[0], &byte, 1) == 1) {
    report.killed.store(now_s());
    kill(processes.back().id, SIGKILL);
  }
  bool is_whole = true;
  for (const Process& one : processes) {
    int status = 0;
    waitpid(one.id, &status, 0);
    const bool is_victim = plan.finish == Finish::kDeath && one.first == plan.members - 1;
    if (!is_victim && status != 0) is_whole = false;
  }
  if (!is_whole) refuse("a process of the simulation did not end well");
  return judge(plan, report, processes.size());
}

}  // namespace
}  // namespace memspan::scale

int main(int count, char** arguments) {
  return memspan::scale::run(memspan::scale::parse(count, arguments));
}
