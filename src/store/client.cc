// SPDX-License-Identifier: Apache-2.0
#include "store/client.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "core/interrupt.h"
#include "core/log.h"
#include "core/remedy.h"
#include "net/tcp.h"
#include "net/tls.h"
#include "store/authentication.h"
#include "store/client_connection.h"
#include "store/host_secret.h"
#include "store/notice.h"

namespace memspan {
namespace {

// Pauses between attempts. A store that starts with this process is found at once; a much later one
// gets a few attempts a second from each member.
constexpr int kFirstPauseMs = 5;
constexpr int kLongestPauseMs = 200;

void pause(int ms, const Deadline& deadline) {
  const Deadline next = until_next_look(deadline.within(std::chrono::milliseconds(ms)));
  static_cast<void>(::poll(nullptr, 0, std::max(next.remaining_poll_ms(), 0)));
}

// No process listens yet, or the listener has ended: another attempt may find the store.
bool may_come_later(Code code) {
  return code == Code::kUnavailable || code == Code::kStoreLost || code == Code::kTimeout;
}

// For one of several addresses, before the next one is tried.
constexpr Duration kPlacePatience = std::chrono::seconds(1);
// For a member or a store on another host.
constexpr Duration kSilenceElsewhere = std::chrono::seconds(3);

constexpr std::string_view kThreeWays =
    "the store is on another host and nothing protects the connection; give every member the same "
    "secret (MEMSPAN_JOB_SECRET_FILE), or certificates (shmem_set_conf_store_tls(true, tls_info, "
    "length)), or say that it shall be plain (shmem_set_conf_store_tls(false, NULL, 0))";
MEMSPAN_REMEDY(kUnprotected, "store-unprotected",
               "Without a secret or certificates, the whole network could change the connection.",
               "Copy one secret to all hosts (openssl rand -hex 32 > FILE; chmod 600 FILE) and set "
               "MEMSPAN_JOB_SECRET_FILE to it, or use certificates: docs/secure.md.");
MEMSPAN_REMEDY(kStoreRefuses, "store-secret-differs",
               "A process listens with another secret, another user or other TLS settings.",
               "Give the store and all members one user and the same secret or certificates.");
MEMSPAN_REMEDY(
    kNoStore, "no-store",
    "No process answers at the address: it has not started or ended, or a firewall drops packets.",
    "Start the store (memspan-store, rank 0), and test the address with `nc -vz HOST PORT`. The "
    "variables of torchrun put it at MASTER_PORT + 11.");

// On one host, a live connection proves enough.
std::uint32_t silence_ms(const StoreAccess& access, int socket) {
  const Duration silence =
      access.silence.value_or(has_local_peer(socket) ? Duration::zero() : kSilenceElsewhere);
  return static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(silence).count());
}

}  // namespace

// Repeated attempts to reach a store.
class StoreClient::Attempts {
 public:
  explicit Attempts(const StoreAccess& access) : access_(access) {}

  // Reads the files that all attempts share.
  Status prepare() {
    const auto& security = access_.security;
    if (security.kind == StoreSecurity::Kind::kSecret) return use_secret(security.secret);
    if (security.kind != StoreSecurity::Kind::kCertificates) return Status::ok();
    MEMSPAN_TRY_ASSIGN(
        tls_, TlsContext::from_certificates(TlsContext::Side::kClient, security.certificates),
        "setting up TLS");
    return Status::ok();
  }

  // Tries the addresses in order. Prefers a failure after which a retry may succeed. Each address
  // has until `opening` to shake hands.
  Result<std::unique_ptr<StoreClient>> attempt(const Deadline& opening, const Deadline& deadline) {
    if (access_.before_attempt) access_.before_attempt();
    const auto& places = access_.endpoint.endpoints;
    Status last;
    for (const Endpoint& place : places) {
      auto client = attempt_at(place, places.size() == 1 ? opening : opening.within(kPlacePatience),
                               deadline);
      if (client.is_ok()) return client;
      if (last.is_ok() || may_come_later(client.code()) || !may_come_later(last.code()))
        last = client.status();
    }
    return last;
  }

 private:
  Result<std::unique_ptr<StoreClient>> attempt_at(const Endpoint& place, const Deadline& opening,
                                                  const Deadline& deadline) {
    auto stream = open(place, opening);
    if (!stream.is_ok()) return stream.status();
    const StoreHello hello{.member = access_.member,
                           .job = access_.job,
                           .rank = access_.rank,
                           .silence_ms = silence_ms(access_, (*stream)->socket()),
                           .epoch = access_.epoch};
    auto connection =
        Connection::greet(std::move(stream).value(), place.to_string(), hello, deadline);
    if (!connection.is_ok()) return judge(place, connection.status());
    return std::unique_ptr<StoreClient>(
        new StoreClient(std::move(connection).value(), access_.member));
  }

  // Returns a stream after its handshake. kUnavailable if a later attempt may succeed.
  Result<std::unique_ptr<ByteChannel>> open(const Endpoint& place, const Deadline& deadline) {
    auto connection = connect_tcp(place, deadline);
    if (!connection.is_ok()) {
      patience_ = Deadline::never();  // no process listens, so none refuses
      return connection.status();
    }
    if (access_.security.kind == StoreSecurity::Kind::kPlain) return open_plain(place, *connection);
    if (access_.security.kind == StoreSecurity::Kind::kHostSecret)
      MEMSPAN_PASS(use_host_secret(place, *connection));
    auto stream = tls_->open(std::move(connection->socket), place.host);
    if (!stream.is_ok()) return stream;
    Status status = finish_handshake(**stream, deadline);
    if (status.is_ok()) status = check_store_job(*tls_, **stream, access_.job);
    // The secret may belong to a killed store, and the next one may be about to publish its own.
    if (status.code() == Code::kAuth && access_.security.kind == StoreSecurity::Kind::kHostSecret)
      return in_vain(place, status.message());
    if (!status.is_ok()) return status;
    patience_ = Deadline::never();
    return stream;
  }

  // The status of a failed greeting.
  Status judge(const Endpoint& place, const Status& status) {
    // A store that wants TLS closes a plain connection without a word.
    if (access_.security.kind != StoreSecurity::Kind::kPlain || status.code() != Code::kStoreLost)
      return status;
    return in_vain(place,
                   "it closes every plain connection: it requires TLS, and this process does "
                   "not use it");
  }

  Status use_secret(const std::string& secret) {
    MEMSPAN_TRY_ASSIGN(tls_, TlsContext::from_secret(TlsContext::Side::kClient, secret),
                       "setting up TLS");
    return Status::ok();
  }

  Status use_host_secret(const Endpoint& place, const TcpConnection& connection) {
    if (!connection.is_local) return {Code::kNotSupported, std::string(kThreeWays) + kUnprotected};
    auto secret = read_host_secret(connection.peer);
    if (secret.code() == Code::kNotFound)
      return in_vain(place,
                     fmt::format("it shares no secret with this user ({}): it has certificates, "
                                 "does without TLS, belongs to another user, or is not a store",
                                 secret.status().message()));
    if (!secret.is_ok()) return secret.status();
    return use_secret(*secret);
  }

  // A process listens but refuses this one: kUnavailable at first, kAuth if that persists.
  Status in_vain(const Endpoint& place, std::string_view why) {
    if (patience_.is_never()) patience_ = Deadline::after(access_.refusal_patience);
    return {
        patience_.has_passed() ? Code::kAuth : Code::kUnavailable,
        fmt::format("a process listens at {}, but {}{}", place.to_string(), why, kStoreRefuses)};
  }

  Result<std::unique_ptr<ByteChannel>> open_plain(const Endpoint& place,
                                                  TcpConnection& connection) {
    if (!connection.is_loopback && !std::exchange(has_warned_, true))
      log_line(LogLevel::kWarn,
               fmt::format("the connection to the store at {} is plain, as it was asked for: "
                           "anyone on the network can read and change what it carries",
                           place.to_string()));
    return make_plain_channel(std::move(connection.socket));
  }

  const StoreAccess& access_;
  std::shared_ptr<const TlsContext> tls_;  // not shared
  Deadline patience_ = Deadline::never();  // runs from the first refusal
  bool has_warned_ = false;
};

StoreClient::StoreClient(std::unique_ptr<Connection> connection, std::string member)
    : member_(std::move(member)), connection_(std::move(connection)) {}
StoreClient::~StoreClient() = default;

Result<std::unique_ptr<StoreClient>> StoreClient::adopt(Fd socket, std::string_view member,
                                                        Deadline deadline) {
  int type = 0;
  socklen_t length = sizeof type;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM)
    return Status(Code::kInvalidArgument, "the descriptor is not a stream socket");
  tune_connection(socket.get());
  const StoreHello hello{.member = std::string(member)};
  MEMSPAN_TRY_ASSIGN(std::unique_ptr<Connection> connection,
                     Connection::greet(make_plain_channel(std::move(socket)),
                                       "on an adopted socket", hello, deadline),
                     "greeting the store");
  return std::unique_ptr<StoreClient>(new StoreClient(std::move(connection), hello.member));
}

Result<std::unique_ptr<StoreClient>> StoreClient::connect_once(const StoreAccess& access,
                                                               Deadline deadline) {
  Attempts attempts(access);
  MEMSPAN_TRY(attempts.prepare(), "connecting to the store at " + access.endpoint.to_string());
  return attempts.attempt(deadline, deadline);
}

Result<std::unique_ptr<StoreClient>> StoreClient::connect(const StoreAccess& access,
                                                          Deadline deadline) {
  const Clock::time_point begin = Clock::now();
  const std::string where = access.endpoint.to_string();
  Attempts attempts(access);
  MEMSPAN_TRY(attempts.prepare(), "connecting to the store at " + where);
  Status last(Code::kTimeout, "the deadline had passed before the first attempt");
  // Attempts end at `silent` until the warning is logged, and then only at the deadline.
  const Deadline silent = deadline.within(kSilentWait);
  bool has_told = false;
  bool has_tried = false;
  for (int ms = kFirstPauseMs; !deadline.has_passed(); ms = std::min(2 * ms, kLongestPauseMs)) {
    const Deadline end = has_told ? deadline : silent;
    auto client = attempts.attempt(end, deadline);
    if (client.is_ok()) return client;
    // The reason of an earlier attempt says more than that this one was cut short.
    if (!has_tried || !end.has_passed() || !may_come_later(client.status().code()))
      last = client.status();
    has_tried = true;
    if (!may_come_later(last.code())) return last.annotate("connecting to the store at " + where);
    if (!has_told && silent.has_passed() && !deadline.has_passed()) {
      has_told = true;
      log_line(
          LogLevel::kWarn,
          fmt::format("waiting {} for the store at {}, which has not answered for {:.0f} s: {}{}",
                      until(deadline), where, to_seconds(Clock::now() - begin), last.message(),
                      kNoStore));
    }
    pause(ms, deadline);
    if (is_interrupted()) return interruption().annotate("connecting to the store at " + where);
  }
  return Status(Code::kTimeout,
                fmt::format("no store at {} after {:.3f} s: {}{}", where,
                            to_seconds(Clock::now() - begin), last.message(), kNoStore));
}

Status StoreClient::set(std::string_view key, std::string_view value, Deadline deadline,
                        KeyLife life) {
  return connection_
      ->call({.operation = StoreOperation::kSet,
              .keys = {std::string(key)},
              .value = std::string(value),
              .is_owned = life == KeyLife::kLease},
             deadline)
      .status();
}

Result<std::string> StoreClient::get(std::string_view key, Deadline deadline) {
  return connection_->value_of({.operation = StoreOperation::kGet, .keys = {std::string(key)}},
                               deadline);
}

Result<std::string> StoreClient::get_now(std::string_view key, Deadline deadline) {
  return connection_->value_of({.operation = StoreOperation::kGetNow, .keys = {std::string(key)}},
                               deadline);
}

Result<std::int64_t> StoreClient::add(std::string_view key, std::int64_t delta, Deadline deadline,
                                      KeyLife life) {
  return connection_->number_of({.operation = StoreOperation::kAdd,
                                 .keys = {std::string(key)},
                                 .delta = delta,
                                 .is_owned = life == KeyLife::kLease},
                                deadline);
}

Result<std::uint64_t> StoreClient::append(std::string_view key, std::string_view value,
                                          Deadline deadline, KeyLife life) {
  auto length = connection_->number_of({.operation = StoreOperation::kAppend,
                                        .keys = {std::string(key)},
                                        .value = std::string(value),
                                        .is_owned = life == KeyLife::kLease},
                                       deadline);
  if (!length.is_ok()) return length.status();
  return static_cast<std::uint64_t>(*length);
}

Result<std::string> StoreClient::compare_and_swap(std::string_view key, std::string_view expected,
                                                  std::string_view desired, Deadline deadline,
                                                  KeyLife life) {
  return connection_->value_of({.operation = StoreOperation::kCompareAndSwap,
                                .keys = {std::string(key)},
                                .value = std::string(desired),
                                .expected = std::string(expected),
                                .is_owned = life == KeyLife::kLease},
                               deadline);
}

Result<bool> StoreClient::remove(std::string_view key, Deadline deadline) {
  auto existed = connection_->number_of(
      {.operation = StoreOperation::kRemove, .keys = {std::string(key)}}, deadline);
  if (!existed.is_ok()) return existed.status();
  return *existed != 0;
}

Status StoreClient::wait(const std::vector<std::string>& keys, Deadline deadline) {
  if (keys.empty()) return Status::ok();
  return connection_->call({.operation = StoreOperation::kWait, .keys = keys}, deadline).status();
}

Result<StoreListing> StoreClient::list(std::string_view prefix, Deadline deadline) {
  auto texts = connection_->texts_of(
      {.operation = StoreOperation::kList, .keys = {std::string(prefix)}}, deadline);
  if (!texts.is_ok()) return texts.status();
  StoreListing listing;
  for (std::size_t i = 0; i + 1 < texts->size(); i += 2)
    listing.emplace_back(std::move((*texts)[i]), std::move((*texts)[i + 1]));
  return listing;
}

Result<std::uint64_t> StoreClient::watch(std::string_view prefix, StoreWatcher watcher,
                                         Deadline deadline) {
  return connection_->watch(std::string(prefix), std::move(watcher), deadline);
}

Status StoreClient::unwatch(std::uint64_t watch, Deadline deadline) {
  return connection_->unwatch(watch, deadline);
}

Result<StoreRank> StoreClient::take_rank(std::string_view scope, int rank, int size,
                                         Deadline deadline) {
  auto taken = connection_->value_of({.operation = StoreOperation::kTakeRank,
                                      .keys = {std::string(scope)},
                                      .rank = rank,
                                      .size = static_cast<std::uint32_t>(std::max(size, 0))},
                                     deadline);
  if (!taken.is_ok()) return taken.status();
  return StoreRank::decode(*taken);
}

Status StoreClient::give_rank(std::string_view scope, Deadline deadline) {
  return connection_
      ->call({.operation = StoreOperation::kGiveRank, .keys = {std::string(scope)}}, deadline)
      .status();
}

const std::string& StoreClient::member() const {
  return member_;
}

void StoreClient::end() {
  connection_->end();
}

std::uint64_t StoreClient::epoch() const {
  return connection_->welcome().epoch;
}

SessionId StoreClient::session() const {
  return connection_->welcome().session;
}

}  // namespace memspan
