// SPDX-License-Identifier: Apache-2.0
#include "world/exchange.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <memory>

#include "net/unix_socket.h"
#include "store/client.h"
#include "store/recipes/store_group.h"

namespace memspan {
namespace {

constexpr auto kAnswerLimit = std::chrono::seconds(10);

class LauncherExchange {
 public:
  LauncherExchange(const Launch& launch, const NodeSegment& segment)
      : launch_(launch), segment_(segment) {}

  Result<std::vector<std::string>> operator()(const std::string& mine) {
    if (store_ == nullptr) MEMSPAN_TRY(connect(), "connecting to the launcher's store");
    auto all = group_->allgather(mine, Deadline::never(),
                                 [this](const std::vector<int>& missing) { return look(missing); });
    if (all.is_ok()) return all;
    return all.status().annotate("exchanging addresses over the launcher's store");
  }

 private:
  Status connect() {
    MEMSPAN_PASS(launch_.is_network() ? connect_over_network() : connect_on_host());
    // A process may leave the job and join it again.
    const auto generation = segment_.peer(launch_.rank).generation.load();
    group_ = std::make_unique<StoreGroup>(*store_, fmt::format("join/{}", generation), launch_.rank,
                                          launch_.size);
    return Status::ok();
  }

  Status connect_over_network() {
    MEMSPAN_TRY_ASSIGN(const Endpoint endpoint, Endpoint::parse(launch_.store_url),
                       "reading the launcher's address");
    const auto& secret = segment_.header().secret;
    MEMSPAN_TRY_ASSIGN(store_,
                       StoreClient::connect({.endpoint = endpoint,
                                             .security = {.kind = StoreSecurity::Kind::kSecret,
                                                          .secret = {secret, sizeof secret}},
                                             .member = fmt::format("PE {}", launch_.rank)},
                                            Deadline::after(kAnswerLimit)),
                       "connecting");
    return Status::ok();
  }

  // One end of a new pair goes to the launcher over the inherited socket, which stays open.
  Status connect_on_host() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      return Status::from_errno("making a pair of sockets");
    Fd ours(ends[0]);
    const Fd theirs(ends[1]);
    const Fd inherited(fcntl(launch_.store, F_DUPFD_CLOEXEC, 0));
    if (!inherited.is_valid()) return Status::from_errno("using the launcher's socket");
    MEMSPAN_PASS(unix_send(inherited, "s", {theirs.get()}));
    MEMSPAN_TRY_ASSIGN(store_,
                       StoreClient::adopt(std::move(ours), fmt::format("PE {}", launch_.rank),
                                          Deadline::after(kAnswerLimit)),
                       "connecting");
    return Status::ok();
  }

  // The launcher notes deaths on all nodes, also of processes that never came to the store.
  Status look(const std::vector<int>& missing) const {
    for (const int rank : missing)
      if (segment_.peer(rank).death.load(std::memory_order_acquire) != 0)
        return {Code::kPeerLost, fmt::format("PE {} died before it joined", rank)};
    if (segment_.header().exit_requested.load(std::memory_order_acquire) == 2)
      return {Code::kUnavailable, "the job was asked to end"};
    return Status::ok();
  }

  const Launch launch_;
  const NodeSegment& segment_;
  std::unique_ptr<StoreClient> store_;
  std::unique_ptr<StoreGroup> group_;
};

}  // namespace

Exchange exchange_over_launcher(const Launch& launch, const NodeSegment& segment) {
  // Owner: the function and its copies.
  auto exchange = std::make_shared<LauncherExchange>(launch, segment);
  return [exchange](const std::string& mine) { return (*exchange)(mine); };
}

}  // namespace memspan
