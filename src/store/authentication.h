// SPDX-License-Identifier: Apache-2.0
// Authentication of the store's members: the protection of connections, and the checks of hello and
// certificate.
#pragma once

#include "net/tls.h"
#include "store/host_secret.h"
#include "store/state.h"

namespace memspan {

// A member's check of a store: ok unless the store's certificate names another job than the
// member's own certificate or, if that names none, than `job` (empty: any). A member of one job may
// not host the store of another one.
Status check_store_job(const TlsContext& own, const ByteChannel& store, const std::string& job);

// For a connected stream socket whose two ends are known: without TLS.
Result<std::unique_ptr<ByteChannel>> adopt_channel(Fd socket);

// One thread at a time. Move-only.
class StoreAuthentication {
 public:
  // Reads the files. Publishes the host's secret for `endpoint` if that is the protection. An empty
  // `job` means that of the store's own certificate, or any. kInvalidArgument if that certificate
  // names another job.
  static Result<StoreAuthentication> make(const StoreSecurity& security, const Endpoint& endpoint,
                                          std::string job);
  // For sockets whose two ends are known.
  static StoreAuthentication none(std::string job) { return StoreAuthentication(std::move(job)); }

  StoreSecurity::Kind kind() const { return kind_; }
  // The published or given secret; empty with certificates and without TLS.
  const std::string& secret() const { return secret_; }
  // Null: plain.
  const TlsContext* tls() const { return tls_.get(); }
  // Wraps the socket in its protection, before the handshake.
  Result<std::unique_ptr<ByteChannel>> open(Fd socket) const;

  // Checks whether the member may join. Fills in the fields that its certificate names.
  Status check(SessionId from, const StoreHello& hello, const ByteChannel& stream,
               StoreState::Member& member) const;
  // Ok if the store may show the certificate of `tls`. Thread-safe.
  Status check_own(const TlsContext& tls) const;
  // Uses `tls` from now on. Sessions before `first` did their handshakes with the previous one.
  void trust(std::shared_ptr<const TlsContext> tls, SessionId first);
  // Withdraws the host's secret. Call it before the address is free for another store.
  void end() { published_.reset(); }

 private:
  explicit StoreAuthentication(std::string job) : job_(std::move(job)) {}

  StoreSecurity::Kind kind_ = StoreSecurity::Kind::kPlain;
  std::optional<HostSecret> published_;
  std::string secret_;
  std::shared_ptr<const TlsContext> tls_;  // null: plain; shared with the reloading code
  std::string job_;                        // served by the store; empty: any. Set by make() only
  SessionId trusted_since_ = 0;            // the first session that began with this tls_
};

}  // namespace memspan
