// SPDX-License-Identifier: Apache-2.0
#include "store/server.h"

#include "store/server_loop.h"

namespace memspan {
StoreServer::StoreServer(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
StoreServer::~StoreServer() = default;

Result<std::unique_ptr<StoreServer>> StoreServer::listen(const Endpoint& endpoint,
                                                         StoreServerOptions options) {
  MEMSPAN_TRY_ASSIGN(TcpListener listener, listen_tcp(endpoint), "starting the store");
  MEMSPAN_TRY_ASSIGN(StoreAuthentication authentication,
                     StoreAuthentication::make(options.security, listener.endpoint, options.job),
                     "starting the store");
  MEMSPAN_TRY_ASSIGN(
      auto loop, Loop::start(std::move(listener), std::move(authentication), std::move(options)),
      "starting the store");
  return std::unique_ptr<StoreServer>(new StoreServer(std::move(loop)));
}

Result<std::unique_ptr<StoreServer>> StoreServer::without_listener(StoreServerOptions options) {
  StoreAuthentication none = StoreAuthentication::none(options.job);
  MEMSPAN_TRY_ASSIGN(auto loop, Loop::start(std::nullopt, std::move(none), std::move(options)),
                     "starting the store");
  return std::unique_ptr<StoreServer>(new StoreServer(std::move(loop)));
}

Status StoreServer::adopt(Fd socket) {
  return loop_->adopt(std::move(socket)).annotate("adopting a connection");
}

const Endpoint& StoreServer::endpoint() const {
  return loop_->endpoint();
}

const std::string& StoreServer::secret() const {
  return loop_->secret();
}

Result<StoreStatistics> StoreServer::statistics(Duration patience) {
  return loop_->statistics(patience);
}

Status StoreServer::reload(const StoreSecurity& security) {
  return loop_->reload(security);
}

}  // namespace memspan
