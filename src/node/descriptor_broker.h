// SPDX-License-Identifier: Apache-2.0
// Exchange of file descriptors between processes of one host. Every process has a broker: an
// abstract Unix socket with a random 128-bit name, and the descriptors it publishes there by name.
//
//   fetch(address, name) ──► the other's broker: same user? knows the cookie? may fetch that name?
//                        ◄── up to 7 descriptors, and a pidfd of the process itself
//
// The address goes to peers over a private channel (a store of ours) together with a cookie, which
// every request repeats. Where only an open channel exists there is no cookie; then who may fetch
// is told by process identities, which both sides check against what the kernel says of the other.
//
// The event loop of the process serves, fetches and waits for nobody: a process that is stuck
// delays only the answer to who asked it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/fd.h"
#include "core/status.h"
#include "node/process_identity.h"

namespace memspan {

// What addresses are told over.
enum class Channel {
  kPrivate,  // only members can read it
  kOpen,     // anybody may listen: the caller's own way
};

// What another broker gave. Move-only value.
struct FetchedDescriptors {
  std::vector<Fd> descriptors;
  Fd process;      // a pidfd: readable once the process is gone; none where the system has none
  pid_t pid = -1;  // as this process sees it; -1 when it is in another pid namespace
  // To the other broker. It stays open there only where Access::fetched took its end.
  Fd connection;
};

// Who fetched something. Move-only value.
struct Fetcher {
  Fd process;  // as in FetchedDescriptors
  Fd connection;
};

// Who may fetch what is published.
struct Access {
  Channel channel = Channel::kPrivate;  // kPrivate: who knows the cookie
  // If not empty, only one of these. On an open channel there has to be one.
  std::vector<ProcessIdentity> processes = {};
  // Called on the event loop's thread when somebody has it; must not wait for the broker.
  std::function<void(Fetcher)> fetched = nullptr;
};

// Owners: the publications that give them.
using SharedDescriptors = std::shared_ptr<const std::vector<Fd>>;

// Thread-safe, but for its end. Its calls do not block, but where they say so.
class DescriptorBroker {
 public:
  static Result<std::unique_ptr<DescriptorBroker>> open();
  ~DescriptorBroker();
  DescriptorBroker(const DescriptorBroker&) = delete;
  DescriptorBroker& operator=(const DescriptorBroker&) = delete;

  // "NAME COOKIE"; for an open channel "NAME ".
  std::string address(Channel channel = Channel::kPrivate) const;
  // Gives these to whoever asks for `name` (which has no blank) from now on, in place of what it
  // gave before. kInvalidArgument when they are more than 7, or nobody may have them.
  Status publish(const std::string& name, std::vector<Fd> descriptors, Access access = {});
  Status publish(const std::string& name, SharedDescriptors descriptors, Access access = {});
  void retract(const std::string& name);

  // `done` is called once, on the event loop's thread, unless it is forgotten before; it must not
  // wait for the broker. kNotFound: the process does not publish that (any more); kUnavailable: it
  // is gone, or does not let this process have it; kAuth: it is another user's, or it is not
  // `owner`.
  using Done = std::function<void(Result<FetchedDescriptors>)>;
  std::uint64_t fetch(const std::string& address, std::string_view name, Done done,
                      std::optional<ProcessIdentity> owner = std::nullopt);
  // The same, waited for; kTimeout when there is no answer, as from a process that is stopped. Not
  // for the event loop's thread.
  Result<FetchedDescriptors> fetch_and_wait(const std::string& address, std::string_view name,
                                            Deadline deadline,
                                            std::optional<ProcessIdentity> owner = std::nullopt);
  // No call for that request runs or begins after this returned (a call that is running may forget
  // itself).
  void forget(std::uint64_t request);

 private:
  class State;
  explicit DescriptorBroker(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace memspan
