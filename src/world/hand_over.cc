// SPDX-License-Identifier: Apache-2.0
#include "world/hand_over.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/environment.h"
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

// "NONCE RANK" and one pidfd; anything else is a stranger.
Result<int> greet(const Fd& socket, const std::string& nonce, int size,
                  std::vector<ServedMember>& members, Deadline deadline) {
  MEMSPAN_TRY(check_same_user(socket), "a process that connected");
  MEMSPAN_TRY_ASSIGN(UnixMessage hello, unix_receive(socket, deadline), "a process that connected");
  if (hello.descriptors.size() != 1 || hello.bytes.rfind(nonce + " ", 0) != 0)
    return Status(Code::kAuth, "a process that connected does not know the job's nonce");
  MEMSPAN_TRY_ASSIGN(std::int64_t rank,
                     parse_integer("the rank", hello.bytes.substr(nonce.size() + 1), 1, size - 1),
                     "a process that connected");
  members[static_cast<std::size_t>(rank)].pidfd = std::move(hello.descriptors[0]);
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

Result<HandOver> HandOver::open() {
  std::string name = "memspan-" + random_hex(16);
  MEMSPAN_TRY_ASSIGN(Fd listener, unix_listen(name), "opening the hand-over socket");
  return HandOver(std::move(listener), name + " " + random_hex(16));
}

Result<std::vector<ServedMember>> HandOver::serve(int size, int board, int heap, Deadline deadline,
                                                  const std::function<Status()>& check) {
  std::string nonce = ticket_.substr(ticket_.find(' ') + 1);
  MEMSPAN_TRY_ASSIGN(Fd self, open_pidfd(getpid()), "handing over");
  std::vector<ServedMember> members(static_cast<std::size_t>(size));
  for (std::string missing = missing_ranks(members); !missing.empty();
       missing = missing_ranks(members)) {
    auto socket = unix_accept(listener_, deadline.within(kCheckEvery));
    if (socket.code() == Code::kTimeout) {
      if (deadline.has_passed())
        return Status(Code::kTimeout, "ranks that did not come: " + missing);
      MEMSPAN_TRY(check(), "waiting for ranks " + missing);
      continue;
    }
    if (!socket.is_ok()) return socket.status().annotate("handing over");
    auto rank = greet(*socket, nonce, size, members, deadline.within(kGreetingLimit));
    if (!rank.is_ok()) continue;
    // A member that is gone already will be noticed through its pidfd.
    [[maybe_unused]] Status sent = unix_send(*socket, "welcome", {board, heap, self.get()});
    members[static_cast<std::size_t>(*rank)].connection = std::move(socket).value();
  }
  return members;
}

Result<HandedOver> take_over(const std::string& ticket, int rank, Deadline deadline) {
  std::size_t space = ticket.find(' ');
  if (space == std::string::npos)
    return Status(Code::kInvalidArgument, "the hand-over ticket has no nonce");
  MEMSPAN_TRY_ASSIGN(Fd socket, unix_connect(ticket.substr(0, space)),
                     "connecting to the keeper of this host");
  MEMSPAN_TRY(check_same_user(socket), "the keeper of this host");
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
