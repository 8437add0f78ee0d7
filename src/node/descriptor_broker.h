// SPDX-License-Identifier: Apache-2.0
// Exchange of file descriptors between processes of one host. Every process has a broker: an
// abstract Unix socket with a random 128-bit name, and the descriptors it publishes there by name.
//
//   fetch(address, name) ──► the other's broker: same user? knows the cookie? may fetch that name?
//                        ◄── up to 7 descriptors, and one that shows the process's end
//
// Peers get the address over a private channel (a store of ours), with a cookie that every request
// repeats. An open channel carries no cookie. Then process identities decide which processes may
// fetch, and both sides check them against what the kernel reports of the other.
//
// The event loop of the process serves and fetches without waiting. A stuck process delays only the
// answers to requests sent to it.
#pragma once

#include <map>
#include <vector>

#include "core/mutex.h"
#include "net/event_loop.h"
#include "node/process.h"

namespace memspan::inline node {

// The channel that carries addresses.
enum class Channel {
  kPrivate,  // only members can read it
  kOpen,     // any process may listen: the caller's own exchange
};

// A process that fetched something. Move-only value.
struct Fetcher {
  Fd process;     // open_own_end() of that process
  Fd connection;  // leads to its broker
};

// The answer of another broker, which keeps its end of the connection open only if Access::fetched
// took it. Move-only value.
struct FetchedDescriptors : Fetcher {
  std::vector<Fd> descriptors;
  pid_t pid = -1;  // as this process sees it; -1 when it is in another pid namespace
};

// The processes that may fetch a publication.
struct Access {
  Channel channel = Channel::kPrivate;  // kPrivate: only with the cookie
  // If not empty, only these may fetch. On an open channel it must not be empty.
  std::vector<ProcessIdentity> processes = {};
  // Called on the event loop's thread after each fetch; must not wait for the broker.
  std::function<void(Fetcher)> fetched = nullptr;
};

// Owners: the publications that share them.
using SharedDescriptors = std::shared_ptr<const std::vector<Fd>>;

// Thread-safe, except for its destructor. Calls do not block unless documented.
class DescriptorBroker : NotCopyable {
 public:
  static Result<std::unique_ptr<DescriptorBroker>> open();
  ~DescriptorBroker();

  // "NAME COOKIE"; for an open channel "NAME ".
  std::string address(Channel channel = Channel::kPrivate) const {
    return socket_name_ + " " + (channel == Channel::kPrivate ? cookie_ : "");
  }
  // From now on gives these to processes that ask for `name` (without blanks), in place of earlier
  // ones. kInvalidArgument for more than 7, or if no process may fetch them.
  Status publish(const std::string& name, std::vector<Fd> descriptors, Access access = {});
  Status publish(const std::string& name, SharedDescriptors descriptors, Access access = {});
  void retract(const std::string& name) {
    MutexLock lock(mutex_);
    publications_.erase(name);
  }

  // `done` is called once on the event loop's thread, unless the request is forgotten first. It
  // must not wait for the broker. kNotFound: the process does not publish that name (any more).
  // kUnavailable: it is gone or denies this process access. kAuth: it runs as another user or is
  // not `owner`.
  using Done = std::function<void(Result<FetchedDescriptors>)>;
  std::uint64_t fetch(const std::string& address, std::string_view name, Done done,
                      std::optional<ProcessIdentity> owner = std::nullopt);
  // Like fetch(), but waits. kTimeout if no answer comes, for instance from a stopped process. Not
  // for the event loop's thread.
  Result<FetchedDescriptors> fetch_and_wait(const std::string& address, std::string_view name,
                                            Deadline deadline,
                                            std::optional<ProcessIdentity> owner = std::nullopt);
  // After it returns, `done` of that request neither runs nor begins. A running `done` may forget
  // its own request.
  void forget(std::uint64_t request);

 private:
  // A request of this process.
  struct Fetch {
    std::string socket_name;
    std::string request;
    std::optional<ProcessIdentity> owner;
    Done done;
    Fd socket = {};               // once it is connected
    EventLoop::Token token = {};  // of the awaited event, or of the running call
  };
  struct Publication {
    SharedDescriptors descriptors;
    Access access;
  };
  // A connection that has not asked for anything yet.
  struct PendingConnection {
    Fd socket;
    EventLoop::Token token;
  };

  DescriptorBroker() = default;
  // Only calls of the event loop advance a fetch or a connection.
  void connect(std::uint64_t id) MEMSPAN_EXCLUDES(mutex_);
  Status connect(std::uint64_t id, Fetch& fetch) MEMSPAN_REQUIRES(mutex_);
  void take_answer(std::uint64_t id) MEMSPAN_EXCLUDES(mutex_);
  void finish(std::uint64_t id, Result<FetchedDescriptors> answer) MEMSPAN_EXCLUDES(mutex_);
  Status listen() MEMSPAN_REQUIRES(mutex_);
  void accept() MEMSPAN_EXCLUDES(mutex_);
  void pause() MEMSPAN_REQUIRES(mutex_);
  void serve(std::uint64_t id) MEMSPAN_EXCLUDES(mutex_);
  bool may_fetch(const Fd& socket, const std::string& cookie, const Access& access) const;

  std::shared_ptr<EventLoop> loop_;  // owners: all its users
  std::string socket_name_;
  std::string cookie_;
  Fd listener_;
  Fd self_;  // open_own_end()
  Mutex mutex_;
  bool is_ending_ MEMSPAN_GUARDED_BY(mutex_) = false;
  std::uint64_t last_id_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  EventLoop::Token listening_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Publication> publications_ MEMSPAN_GUARDED_BY(mutex_);
  std::map<std::uint64_t, Fetch> fetches_ MEMSPAN_GUARDED_BY(mutex_);
  std::map<std::uint64_t, PendingConnection> pending_ MEMSPAN_GUARDED_BY(mutex_);  // oldest first
};

}  // namespace memspan::inline node
