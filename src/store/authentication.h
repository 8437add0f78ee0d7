// SPDX-License-Identifier: Apache-2.0
// Whom a store takes: the protection of its connections, and what a hello and a certificate must
// say.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/fd.h"
#include "core/status.h"
#include "store/endpoint.h"
#include "store/host_secret.h"
#include "store/security.h"
#include "store/state.h"
#include "store/stream.h"
#include "store/tls.h"

namespace memspan {

// One thread at a time. Move-only.
class StoreAuthentication {
 public:
  // Reads the files; publishes the host's secret for `endpoint` where that is the protection. `job`
  // empty: that of the store's own certificate, or any.
  static Result<StoreAuthentication> make(const StoreSecurity& security, const Endpoint& endpoint,
                                          std::string job);
  // For sockets whose both ends are known.
  static StoreAuthentication none(std::string job) { return StoreAuthentication(std::move(job)); }

  StoreSecurity::Kind kind() const { return kind_; }
  // What it published or was given; empty with certificates and without TLS.
  const std::string& secret() const { return secret_; }
  // Null: plain.
  const TlsContext* tls() const { return tls_.get(); }
  // The connection under its protection, before the handshake.
  Result<std::unique_ptr<StoreStream>> open(Fd socket) const;

  // Whether the member that says this may come. Fills in what its certificate names.
  Status check(SessionId from, const StoreHello& hello, const StoreStream& stream,
               std::uint64_t epoch, StoreState::Member& member) const;
  // From now on; the handshakes of sessions before `first` went by what was trusted before.
  void trust(std::shared_ptr<const TlsContext> tls, SessionId first);
  // Takes back the host's secret: before the address is free for another store.
  void end() { published_.reset(); }

 private:
  explicit StoreAuthentication(std::string job) : job_(std::move(job)) {}
  Status bind(const StoreHello& hello, const StreamIdentity& named,
              StoreState::Member& member) const;

  StoreSecurity::Kind kind_ = StoreSecurity::Kind::kPlain;
  std::optional<HostSecret> published_;
  std::string secret_;
  std::shared_ptr<const TlsContext> tls_;  // null: plain; shared with who reloads it
  std::string job_;                        // that the store serves; empty: any
  SessionId trusted_since_ = 0;            // the first session that began with this tls_
};

}  // namespace memspan
