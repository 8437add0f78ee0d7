// SPDX-License-Identifier: Apache-2.0
#include "store/authentication.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include "net/tcp.h"

namespace memspan {

Status check_store_job(const TlsContext& own, const ByteChannel& store, const std::string& job) {
  MEMSPAN_TRY_ASSIGN(const auto named, store.identity(), "checking the store's certificate");
  const std::string& wanted = own.own_identity() ? own.own_identity()->job : job;
  if (!named || wanted.empty() || named->job == wanted) return Status::ok();
  return {Code::kAuth, fmt::format("the store's certificate names the job \"{}\", not \"{}\"",
                                   named->job, wanted)};
}

Result<std::unique_ptr<ByteChannel>> adopt_channel(Fd socket) {
  int type = 0;
  socklen_t length = sizeof type;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM)
    return Status(Code::kInvalidArgument, "the descriptor is not a stream socket");
  tune_connection(socket.get());
  return make_plain_channel(std::move(socket));
}

Result<StoreAuthentication> StoreAuthentication::make(const StoreSecurity& security,
                                                      const Endpoint& endpoint, std::string job) {
  using Kind = StoreSecurity::Kind;
  StoreAuthentication made(std::move(job));
  made.kind_ = security.kind;
  made.secret_ = security.secret;
  if (security.kind == Kind::kPlain) return made;
  if (security.kind == Kind::kCertificates) {
    MEMSPAN_TRY_ASSIGN(
        made.tls_, TlsContext::from_certificates(TlsContext::Side::kServer, security.certificates),
        "setting up TLS");
    if (made.job_.empty() && made.tls_->own_identity()) made.job_ = made.tls_->own_identity()->job;
    MEMSPAN_PASS(made.check_own(*made.tls_));
    return made;
  }
  if (security.kind == Kind::kHostSecret) {
    MEMSPAN_TRY_ASSIGN(HostSecret published, HostSecret::publish(endpoint), "setting up TLS");
    made.secret_ = published.secret();
    made.published_.emplace(std::move(published));
  }
  MEMSPAN_TRY_ASSIGN(made.tls_, TlsContext::from_secret(TlsContext::Side::kServer, made.secret_),
                     "setting up TLS");
  return made;
}

Result<std::unique_ptr<ByteChannel>> StoreAuthentication::open(Fd socket) const {
  if (tls_ == nullptr) return make_plain_channel(std::move(socket));
  return tls_->open(std::move(socket), {});
}

Status StoreAuthentication::check_own(const TlsContext& tls) const {
  const auto& own = tls.own_identity();
  if (!own || job_.empty() || own->job == job_) return Status::ok();
  return {Code::kInvalidArgument,
          fmt::format("the store's certificate names the job \"{}\", and the store serves the job "
                      "\"{}\". Use a certificate of that job, or one that names no job",
                      own->job, job_)};
}

void StoreAuthentication::trust(std::shared_ptr<const TlsContext> tls, SessionId first) {
  tls_ = std::move(tls);
  trusted_since_ = first;
}

Status StoreAuthentication::check(SessionId from, const StoreHello& hello,
                                  const ByteChannel& stream, StoreState::Member& member) const {
  if (tls_ != nullptr && from < trusted_since_)
    if (Status status = tls_->accepts(stream); !status.is_ok())
      return {Code::kAuth, "the certificate is not good any more: " + status.message()};
  MEMSPAN_PASS_ASSIGN(auto named, stream.identity());
  // A certificate that names a member decides its identity. If the store knows no job, take_rank()
  // checks the named one against the scope.
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

}  // namespace memspan
