// SPDX-License-Identifier: Apache-2.0
// Where processes of one host hand descriptors to each other: every process has a door, an abstract
// Unix socket with a random 128-bit name, and what it offers there by name.
//
//   ask(ticket, name) ──► the other's door: same user? knows the nonce? offers the name?
//                     ◄── up to 7 descriptors, and a pidfd of the process itself
//
// One thread serves, asks and watches, and waits for nobody: a process that is stuck delays only
// the answer to who asked it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/fd.h"
#include "core/status.h"

namespace memspan {

// What another door gave. Move-only value.
struct DoorAnswer {
  std::vector<Fd> descriptors;
  Fd process;      // a pidfd: readable once the process is gone; none where the system has none
  pid_t pid = -1;  // as this process sees it; -1 when it is in another pid namespace
};

// Thread-safe, but for its end. Its calls do not block, but where they say so.
class Door {
 public:
  static Result<std::unique_ptr<Door>> open();
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  // "NAME NONCE", for who may ask; to be told over the store only.
  const std::string& ticket() const;
  // Gives these to whoever asks for `name` (which has no blank) from now on, in place of what it
  // gave before. kInvalidArgument when they are more than 7.
  Status offer(const std::string& name, std::vector<Fd> descriptors);
  void withdraw(const std::string& name);

  // `done` is called once, on the door's thread, unless it is forgotten before; it must not wait
  // for the door. kNotFound: the process does not offer that (any more); kUnavailable: it is gone,
  // or was when it was asked; kAuth: it is another user's, or does not take the nonce.
  using Done = std::function<void(Result<DoorAnswer>)>;
  std::uint64_t ask(const std::string& ticket, std::string_view name, Done done);
  // The same, waited for; kTimeout when there is no answer, as from a process that is stopped. Not
  // for the door's thread.
  Result<DoorAnswer> ask_and_wait(const std::string& ticket, std::string_view name,
                                  Deadline deadline);
  // Calls `ended` once, on the door's thread, when the process of the pidfd (borrowed until then)
  // is gone.
  std::uint64_t watch(const Fd& process, std::function<void()> ended);
  // No call for that question or watch runs or begins after this returned (a call that is running
  // on the door's thread may forget itself).
  void forget(std::uint64_t question);

 private:
  class Loop;
  explicit Door(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
};

}  // namespace memspan
