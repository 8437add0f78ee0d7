// SPDX-License-Identifier: Apache-2.0
#include "store/connect.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>

#include "core/interrupt.h"
#include "core/module.h"
#include "net/tcp.h"
#include "store/authentication.h"
#include "store/client.h"
#include "store/etcd/etcd_module.h"
#include "store/notice.h"

namespace memspan::inline store {
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

// A member's check of a store: ok unless the store's certificate names another job than the
// member's own certificate or, if that names none, than `job` (empty: any). A member of one job may
// not host the store of another one.
Status check_store_job(const TlsContext& own, const ByteChannel& store, const std::string& job) {
  MEMSPAN_TRY_ASSIGN(const auto named, store.identity(), "checking the store's certificate");
  const std::string& wanted = own.own_identity() ? own.own_identity()->job : job;
  if (!named || wanted.empty() || named->job == wanted) return Status::ok();
  return {Code::kAuth, fmt::format("the store's certificate names the job \"{}\", not \"{}\"",
                                   named->job, wanted)};
}

// Repeated attempts to reach a store.
class Attempts {
 public:
  explicit Attempts(const StoreAccess& access) : access_(access) {}

  // Reads the files that all attempts share.
  Status prepare() {
    using Kind = StoreSecurity::Kind;
    const auto& security = access_.security;
    if (security.kind != Kind::kSecret && security.kind != Kind::kCertificates) return Status::ok();
    constexpr auto kSide = TlsContext::Side::kClient;
    MEMSPAN_TRY_ASSIGN(tls_,
                       security.kind == Kind::kSecret
                           ? TlsContext::from_secret(kSide, security.secret)
                           : TlsContext::from_certificates(kSide, security.certificates),
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
    MEMSPAN_PASS_ASSIGN(auto stream, open(place, opening));
    const StoreHello hello{.member = access_.member,
                           .job = access_.job,
                           .rank = access_.rank,
                           .silence_ms = silence_ms(access_, stream->socket())};
    auto client = StoreClient::greet(std::move(stream), place.to_string(), hello, deadline);
    // A store that wants TLS closes a plain connection without a word.
    if (client.code() == Code::kStoreLost && access_.security.kind == StoreSecurity::Kind::kPlain)
      return in_vain(place,
                     "it closes every plain connection: it requires TLS, and this process does "
                     "not use it");
    return client;
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

  Status use_host_secret(const Endpoint& place, const TcpConnection& connection) {
    if (!connection.is_local) return {Code::kNotSupported, std::string(kThreeWays) + kUnprotected};
    auto secret = read_host_secret(connection.peer);
    if (secret.code() == Code::kNotFound)
      return in_vain(place,
                     fmt::format("it shares no secret with this user ({}): it has certificates, "
                                 "does without TLS, belongs to another user, or is not a store",
                                 secret.status().message()));
    if (!secret.is_ok()) return secret.status();
    MEMSPAN_TRY_ASSIGN(tls_, TlsContext::from_secret(TlsContext::Side::kClient, *secret),
                       "setting up TLS");
    return Status::ok();
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

constexpr const char* kModuleFile = "libmemspan_etcd.so";

Result<const EtcdModule*> load() {
  auto found = load_module(kModuleFile, kEtcdModuleEntry);
  if (!found.is_ok())
    return Status(found.code(),
                  fmt::format("etcd:// needs a module that is built where libcurl4-openssl-dev and "
                              "nlohmann-json3-dev are, or libcurl at run time: {}",
                              found.status().message()));
  const EtcdModule* module = reinterpret_cast<EtcdModuleEntry>(*found)();
  if (std::string_view(module->version) != MEMSPAN_VERSION)
    return Status(Code::kNotSupported,
                  fmt::format("{} is of version {}, and this is " MEMSPAN_VERSION, kModuleFile,
                              module->version));
  return module;
}

}  // namespace

Status finish_handshake(ByteChannel& stream, const Deadline& deadline) {
  for (;;) {
    const ChannelStep step = stream.handshake();
    if (step.next == ChannelStep::Next::kDone) return Status::ok();
    if (step.next == ChannelStep::Next::kFailed) return step.failure;
    if (step.next == ChannelStep::Next::kEnd)
      return {Code::kStoreLost, "the store closed the connection during the TLS handshake"};
    const short events = step.next == ChannelStep::Next::kWritable ? POLLOUT : POLLIN;
    pollfd polled{.fd = stream.socket(), .events = events, .revents = 0};
    MEMSPAN_PASS(poll_ready({&polled, 1}, deadline, "the TLS handshake did not end in time"));
  }
}

Result<std::unique_ptr<StoreClient>> StoreClient::adopt(Fd socket, std::string_view member,
                                                        Deadline deadline) {
  MEMSPAN_PASS_ASSIGN(auto stream, adopt_channel(std::move(socket)));
  MEMSPAN_TRY_ASSIGN(
      auto client,
      greet(std::move(stream), "on an adopted socket", {.member = std::string(member)}, deadline),
      "greeting the store");
  return client;
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

// Loads libmemspan_etcd.so, once and for good.
Result<std::unique_ptr<KeyValueStore>> connect_etcd(const StoreAccess& access, Deadline deadline) {
  static const auto& module = *new Result<const EtcdModule*>(load());
  if (!module.is_ok()) return module.status();
  const EtcdHost host{.is_interrupted = [] { return is_interrupted(); },
                      .interruption = interruption,
                      .log = log_line};
  return (*module)->connect(access, host, deadline);
}

Result<std::unique_ptr<KeyValueStore>> connect_store(const StoreAccess& access, Deadline deadline) {
  if (access.endpoint.is_etcd()) return connect_etcd(access, deadline);
  MEMSPAN_PASS_ASSIGN(std::unique_ptr<KeyValueStore> client,
                      StoreClient::connect(access, deadline));
  return client;
}

Result<std::unique_ptr<KeyValueStore>> connect_store_once(const StoreAccess& access,
                                                          Deadline deadline) {
  if (access.endpoint.is_etcd()) return connect_etcd(access, deadline);
  Attempts attempts(access);
  MEMSPAN_TRY(attempts.prepare(), "connecting to the store at " + access.endpoint.to_string());
  MEMSPAN_PASS_ASSIGN(std::unique_ptr<KeyValueStore> client, attempts.attempt(deadline, deadline));
  return client;
}

}  // namespace memspan::inline store
