// SPDX-License-Identifier: Apache-2.0
// etcd's members as one. A call uses the current member, and the next one if that does not answer,
// has no leader or is about to end.
#pragma once

#include <atomic>

#include "store/etcd/http.h"

namespace memspan::etcd {

// This process's user at etcd; the name is empty if etcd requires no user. A value.
struct EtcdUser {
  std::string name;
  std::string password;
  // The password is in the private file that MEMSPAN_ETCD_PASSWORD_FILE names.
  static Result<EtcdUser> read(const std::string& name);
};

// Thread-safe.
class Cluster {
 public:
  Cluster(StoreAddress address, EtcdUser user, const HttpSettings& settings, const EtcdHost& host);

  // Sends a repeatable request to one member after the other, until one answers or the deadline has
  // passed (kTimeout). An attempt without an answer may have taken effect. After end() it fails
  // with the status of end(), unless it is a last call.
  enum class Call { kNormal, kLast };
  Result<std::string> call(const char* path, const std::string& body, const Deadline& deadline,
                           Call kind = Call::kNormal);

  // Number of the current member; it grows with every change.
  std::uint64_t turn() const { return turn_.load(std::memory_order_relaxed); }
  const Endpoint& at(std::uint64_t turn) const;
  // The member of that turn failed: makes the next one current that is not passed over, unless that
  // has happened already.
  void give_up(std::uint64_t turn);

  // Sent with every request; empty without a user.
  std::string token() MEMSPAN_EXCLUDES(mutex_);
  // Gets a new token.
  Status authenticate(const Deadline& deadline, Call kind = Call::kNormal);

  // Makes every later call fail with `why`, and pending ones within HttpCalls::kLook. Only the
  // first end() counts.
  void end(Status why) MEMSPAN_EXCLUDES(mutex_);
  bool has_ended() const { return has_ended_.load(std::memory_order_acquire); }
  Status status() MEMSPAN_EXCLUDES(mutex_);

  const StoreAddress& address() const { return address_; }
  const EtcdHost& host() const { return host_; }

 private:
  void pass_over(std::uint64_t turn);  // the member of that turn, for a while
  void pause(Duration duration, const Deadline& deadline) MEMSPAN_EXCLUDES(mutex_);

  const StoreAddress address_;
  const EtcdUser user_;
  const EtcdHost host_;
  HttpCalls calls_;
  std::vector<std::atomic<Clock::time_point>> passed_over_until_;  // of each member
  std::atomic<std::uint64_t> turn_;
  std::atomic<bool> has_ended_ = false;  // set after status_ with release
  Mutex mutex_;
  ConditionVariable ended_;
  Status status_ MEMSPAN_GUARDED_BY(mutex_);
  std::string token_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace memspan::etcd
