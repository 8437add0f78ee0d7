// SPDX-License-Identifier: Apache-2.0
// Authentication of the store's members: the protection of connections, and the checks of hello and
// certificate.
#pragma once

#include <fmt/format.h>
#include <sys/socket.h>

#include "net/tcp.h"
#include "net/tls.h"
#include "store/host_secret.h"
#include "store/state.h"

namespace memspan::inline store {

// For a connected stream socket whose two ends are known: without TLS.
inline Result<std::unique_ptr<ByteChannel>> adopt_channel(Fd socket) {
  int type = 0;
  socklen_t length = sizeof type;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM)
    return Status(Code::kInvalidArgument, "the descriptor is not a stream socket");
  tune_connection(socket.get());
  return make_plain_channel(std::move(socket));
}

// One thread at a time. Move-only.
class StoreAuthentication {
 public:
  // Reads the files. Publishes the host's secret for `endpoint` if that is the protection. An empty
  // `job` means that of the store's own certificate, or any. kInvalidArgument if that certificate
  // names another job.
  static Result<StoreAuthentication> make(const StoreSecurity& security, const Endpoint& endpoint,
                                          std::string job) {
    using Kind = StoreSecurity::Kind;
    StoreAuthentication made(std::move(job));
    made.kind_ = security.kind;
    made.secret_ = security.secret;
    if (security.kind == Kind::kPlain) return made;
    if (security.kind == Kind::kHostSecret) {
      MEMSPAN_TRY_ASSIGN(HostSecret published, HostSecret::publish(endpoint), "setting up TLS");
      made.secret_ = published.secret();
      made.published_.emplace(std::move(published));
    }
    constexpr auto kSide = TlsContext::Side::kServer;
    MEMSPAN_TRY_ASSIGN(made.tls_,
                       security.kind == Kind::kCertificates
                           ? TlsContext::from_certificates(kSide, security.certificates)
                           : TlsContext::from_secret(kSide, made.secret_),
                       "setting up TLS");
    if (made.job_.empty() && made.tls_->own_identity()) made.job_ = made.tls_->own_identity()->job;
    MEMSPAN_PASS(made.check_own(*made.tls_));
    return made;
  }

  // For sockets whose two ends are known.
  static StoreAuthentication none(std::string job) { return StoreAuthentication(std::move(job)); }

  // Never changes, so every thread may call it.
  StoreSecurity::Kind kind() const { return kind_; }
  // The published or given secret; empty with certificates and without TLS.
  const std::string& secret() const { return secret_; }
  // Null: plain.
  const TlsContext* tls() const { return tls_.get(); }
  // Wraps the socket in its protection, before the handshake.
  Result<std::unique_ptr<ByteChannel>> open(Fd socket) const {
    if (tls_ == nullptr) return make_plain_channel(std::move(socket));
    return tls_->open(std::move(socket), {});
  }

  // Checks whether the member may join. Fills in the fields that its certificate names.
  Status check(SessionId from, const StoreHello& hello, const ByteChannel& stream,
               StoreState::Member& member) const {
    if (tls_ != nullptr && from < trusted_since_)
      if (Status status = tls_->accepts(stream); !status.is_ok())
        return {Code::kAuth, "the certificate is not good any more: " + status.message()};
    MEMSPAN_PASS_ASSIGN(auto named, stream.identity());
    // A certificate that names a member decides its identity. If the store knows no job,
    // take_rank() checks the named one against the scope.
    if (named) {
      if (hello.rank >= 0 && named->rank != hello.rank)
        return {Code::kAuth, fmt::format("the certificate names rank {}, the member claims {}",
                                         named->rank, hello.rank)};
      const std::string& job = job_.empty() ? hello.job : job_;
      if (!job.empty() && named->job != job)
        return {Code::kAuth,
                fmt::format("the certificate names the job \"{}\", not \"{}\"", named->job, job)};
      member.rank = named->rank;
      if (job_.empty()) member.job = named->job;
    }
    if (!job_.empty() && !hello.job.empty() && hello.job != job_)
      return {Code::kInvalidArgument,
              fmt::format("this store serves the job \"{}\", not \"{}\"", job_, hello.job)};
    return Status::ok();
  }

  // Ok if the store may show the certificate of `tls`. Thread-safe.
  Status check_own(const TlsContext& tls) const {
    const auto& own = tls.own_identity();
    if (!own || job_.empty() || own->job == job_) return Status::ok();
    return {
        Code::kInvalidArgument,
        fmt::format("the store's certificate names the job \"{}\", and the store serves the job "
                    "\"{}\". Use a certificate of that job, or one that names no job",
                    own->job, job_)};
  }

  // Uses `tls` from now on. Sessions before `first` did their handshakes with the previous one.
  void trust(std::shared_ptr<const TlsContext> tls, SessionId first) {
    tls_ = std::move(tls);
    trusted_since_ = first;
  }

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

}  // namespace memspan::inline store
