// SPDX-License-Identifier: Apache-2.0
// Processes of etcd on the loopback, for tests: they end with the object, or with this process.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/fd.h"
#include "store/store_address.h"

namespace memspan {

// Why there can be none here; empty: there can be.
std::string why_no_etcd();

// How its members are started. A value.
struct EtcdOptions {
  int members = 3;
  std::vector<std::string> flags = {};  // more of them, for each
  bool has_tls = false;                 // for clients; the files are among the flags
  std::string host = "127.0.0.1";       // another one only with may_be_cut_off
  // As root: all are in a network of their own, this thread and those that it makes too, and
  // cut_off() works.
  bool may_be_cut_off = false;
};

// One thread at a time.
class EtcdCluster {
 public:
  // Ready when it returns: there is a leader. Null, with a failure of the test, when it does not
  // come up.
  static std::unique_ptr<EtcdCluster> start(EtcdOptions options = {});
  ~EtcdCluster();
  EtcdCluster(const EtcdCluster&) = delete;
  EtcdCluster& operator=(const EtcdCluster&) = delete;

  int size() const { return static_cast<int>(members_.size()); }
  StoreAddress address(const std::string& prefix) const;
  Endpoint endpoint(int member) const { return members_[static_cast<std::size_t>(member)].client; }
  // Where its members talk to each other; not for clients.
  Endpoint peer(int member) const { return members_[static_cast<std::size_t>(member)].peer; }
  pid_t process(int member) const { return members_[static_cast<std::size_t>(member)].process; }

  // The leader that a majority follows, waited for; `besides` is not asked and not it.
  int leader(int besides = -1);
  // By SIGKILL; start_again() brings it back with its data.
  void kill(int member);
  void start_again(int member);
  void stop(int member) const;       // SIGSTOP, until it has stopped
  void continue_(int member) const;  // SIGCONT

  // Nothing that the member sends arrives, until heal().
  void cut_off(int member) const;
  void heal() const;

  // The answer's body of a POST to a member; empty when there is none.
  std::string post(int member, const std::string& path, const std::string& body) const;

 private:
  struct Member {
    Endpoint client;
    Endpoint peer;
    Fd kept_client, kept_peer;  // nobody else is given the ports
    pid_t process = -1;
  };
  explicit EtcdCluster(EtcdOptions options);
  void spawn(int member);
  std::string url(const Endpoint& endpoint, bool is_client) const;

  const EtcdOptions options_;
  std::string folder_;
  std::vector<Member> members_;
};

}  // namespace memspan
