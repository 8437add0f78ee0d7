// SPDX-License-Identifier: Apache-2.0
#include "world/hand_over.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "core/environment.h"
#include "core/interrupt.h"
#include "core/random.h"
#include "core/unix_socket.h"
#include "world/pidfd.h"

namespace memspan {
namespace {

// A connected stranger may not hold the keeper up for longer than this.
constexpr auto kGreetingLimit = std::chrono::seconds(2);
constexpr auto kCheckEvery = std::chrono::milliseconds(100);

Status check_same_user(const Fd& socket) {
  MEMSPAN_TRY_ASSIGN(uid_t user, unix_peer_user(socket), "checking the other end");
  if (user == geteuid()) return Status::ok();
  return {Code::kAuth,
          fmt::format("the other end runs as user {}, this process as {}", user, geteuid())};
}

// True also when it cannot be told, because `member` counts in another pid namespace.
bool may_be(pid_t process, const ProcessIdentity& member) {
  static const ProcessIdentity own = ProcessIdentity::own();
  const bool is_comparable = own.pid_namespace != 0 && own.pid_namespace == member.pid_namespace;
  return !is_comparable || process == member.process;
}

// "NONCE RANK" and one pidfd; anything else is a stranger.
Result<int> greet(const Fd& socket, const std::string& nonce,
                  const std::vector<ProcessIdentity>& members, std::vector<ServedMember>& served,
                  Deadline deadline) {
  MEMSPAN_TRY(check_same_user(socket), "a process that connected");
  MEMSPAN_TRY_ASSIGN(const pid_t process, unix_peer_process(socket), "a process that connected");
  if (std::none_of(members.begin(), members.end(),
                   [&](const ProcessIdentity& member) { return may_be(process, member); }))
    return Status(Code::kAuth, fmt::format("process {} is none of the job's", process));
  MEMSPAN_TRY_ASSIGN(UnixMessage hello, unix_receive(socket, deadline), "a process that connected");
  if (hello.descriptors.size() != 1 || hello.bytes.rfind(nonce + " ", 0) != 0)
    return Status(Code::kAuth, "a process that connected does not know the job's nonce");
  MEMSPAN_TRY_ASSIGN(std::int64_t rank,
                     parse_integer("the rank", hello.bytes.substr(nonce.size() + 1), 1,
                                   static_cast<std::int64_t>(members.size()) - 1),
                     "a process that connected");
  if (!may_be(process, members[static_cast<std::size_t>(rank)]))
    return Status(Code::kAuth, fmt::format("process {} is not rank {}", process, rank));
  served[static_cast<std::size_t>(rank)].pidfd = std::move(hello.descriptors[0]);
  return static_cast<int>(rank);
}

std::string missing_ranks(const std::vector<ServedMember>& members) {
  std::string text;
  for (std::size_t rank = 1; rank < members.size(); ++rank)
    if (!members[rank].pidfd.is_valid()) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

}  // namespace

Result<Fd> open_pidfd(pid_t process) {
  Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
  if (!pidfd.is_valid())
    return Status::from_errno(fmt::format("pidfd_open of process {}", process));
  return pidfd;
}

ProcessIdentity ProcessIdentity::own() {
  struct stat info {};
  const bool is_known = stat("/proc/self/ns/pid", &info) == 0;
  return {getpid(), is_known ? static_cast<std::int64_t>(info.st_ino) : 0};
}

std::string ProcessIdentity::to_string() const {
  return fmt::format("{} {}", process, pid_namespace);
}

Result<ProcessIdentity> ProcessIdentity::parse(std::string_view text) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const std::size_t space = std::min(text.find(' '), text.size());
  MEMSPAN_TRY_ASSIGN(const std::int64_t process,
                     parse_integer("the process", text.substr(0, space), 1, kMost),
                     "who a member is");
  MEMSPAN_TRY_ASSIGN(
      const std::int64_t pid_namespace,
      parse_integer("the pid namespace", text.substr(std::min(space + 1, text.size())), 0, kMost),
      "who a member is");
  return ProcessIdentity{process, pid_namespace};
}

Result<HandOver> HandOver::open(Channel channel) {
  std::string name = "memspan-" + random_hex(16);
  MEMSPAN_TRY_ASSIGN(Fd listener, unix_listen(name), "opening the hand-over socket");
  return HandOver(std::move(listener),
                  name + " " + (channel == Channel::kPrivate ? random_hex(16) : ""));
}

Result<std::vector<ServedMember>> HandOver::serve(const std::vector<ProcessIdentity>& members,
                                                  int board, int heap, Deadline deadline,
                                                  const std::function<Status()>& check) {
  std::string nonce = ticket_.substr(ticket_.find(' ') + 1);
  MEMSPAN_TRY_ASSIGN(Fd self, open_pidfd(getpid()), "handing over");
  std::vector<ServedMember> served(members.size());
  for (std::string missing = missing_ranks(served); !missing.empty();
       missing = missing_ranks(served)) {
    auto socket = unix_accept(listener_, deadline.within(kCheckEvery));
    if (socket.code() == Code::kTimeout) {
      if (deadline.has_passed())
        return Status(Code::kTimeout, "ranks that did not come: " + missing);
      if (is_interrupted()) return interruption();
      MEMSPAN_TRY(check(), "waiting for ranks " + missing);
      continue;
    }
    if (!socket.is_ok()) return socket.status().annotate("handing over");
    auto rank = greet(*socket, nonce, members, served, deadline.within(kGreetingLimit));
    if (!rank.is_ok()) continue;
    // A member that is gone already will be noticed through its pidfd.
    [[maybe_unused]] Status sent = unix_send(*socket, "welcome", {board, heap, self.get()});
    served[static_cast<std::size_t>(*rank)].connection = std::move(socket).value();
  }
  return served;
}

Result<HandedOver> take_over(const ProcessIdentity& keeper, const std::string& ticket, int rank,
                             Deadline deadline) {
  std::size_t space = ticket.find(' ');
  if (space == std::string::npos)
    return Status(Code::kInvalidArgument, "the hand-over ticket has no nonce");
  MEMSPAN_TRY_ASSIGN(Fd socket, unix_connect(ticket.substr(0, space)),
                     "connecting to the keeper of this host");
  MEMSPAN_TRY(check_same_user(socket), "the keeper of this host");
  MEMSPAN_TRY_ASSIGN(const pid_t process, unix_peer_process(socket), "the keeper of this host");
  if (!may_be(process, keeper))
    return Status(Code::kAuth, fmt::format("process {} has the address of this host's keeper, "
                                           "which is process {}",
                                           process, keeper.process));
  MEMSPAN_TRY_ASSIGN(Fd self, open_pidfd(getpid()), "taking over");
  MEMSPAN_TRY(unix_send(socket, fmt::format("{} {}", ticket.substr(space + 1), rank), {self.get()}),
              "greeting the keeper of this host");
  MEMSPAN_TRY_ASSIGN(UnixMessage welcome, unix_receive(socket, deadline),
                     "waiting for the keeper of this host");
  if (welcome.descriptors.size() != 3)
    return Status(Code::kInternal, fmt::format("the keeper sent {} descriptors instead of 3",
                                               welcome.descriptors.size()));
  return HandedOver{std::move(welcome.descriptors[0]), std::move(welcome.descriptors[1]),
                    std::move(welcome.descriptors[2]), std::move(socket)};
}

}  // namespace memspan
