// SPDX-License-Identifier: Apache-2.0
// The store's verbs on etcd. The keys below the prefix of the address:
//
//   PREFIX/key/KEY                 the keys that members set
//   PREFIX/session/ID              a member, under its lease; the revision of its creation is the
//                                  member's number
//   PREFIX/session/ID/write/N      the marks of its writes
//
// Every write is one transaction, which changes the write's mark. It succeeds only if the member's
// key exists and the mark is as this member left it. The first attempt to arrive records its
// outcome in the mark; later attempts change nothing and read that. So a member without its lease
// writes nothing, a repeated write takes effect once, and a late attempt does not disturb the
// mark's next write. A mark serves one write at a time.
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <future>

#include "core/random.h"
#include "net/event_loop.h"
#include "store/etcd/etcd_streams.h"
#include "store/watch_calls.h"

namespace memspan::etcd {

MEMSPAN_REMEDY(kNoEtcd, "etcd-unreachable", "No member of the etcd cluster answers.",
               "Run `etcdctl endpoint health --endpoints HOST:PORT`; check tls_info and firewall.");

namespace {

constexpr const char* kTransaction = "/v3/kv/txn";
constexpr const char* kGrant = "/v3/lease/grant";
constexpr const char* kRevoke = "/v3/lease/revoke";

// Equal to the built-in server's silence limit between hosts. etcd checks for expired leases twice
// a second.
constexpr std::int64_t kLeaseSeconds = 3;
// Time to revoke a lease, which ends by itself otherwise.
constexpr Duration kGoodbye = std::chrono::milliseconds(1500);

// A mark's record of its write.
constexpr std::string_view kDone = "done";
constexpr std::string_view kRefused = "refused";

using Of = Transaction::Condition::Of;

// Positive and unique.
LeaseId new_lease() {
  return static_cast<LeaseId>(random_number() >> 1 | 1);
}

const KeyValue* find(const std::vector<KeyValue>& keys, std::string_view key) {
  for (const KeyValue& each : keys)
    if (each.key == key) return &each;
  return nullptr;
}

// Thread-safe. In a child made by fork() every call returns kForked.
class EtcdStore final : public KeyValueStore {
 public:
  EtcdStore(const StoreAccess& access, EtcdUser user, std::unique_ptr<HttpSettings> settings,
            const EtcdHost& host)
      : member_(access.member),
        host_(host),
        keys_(access.endpoint.prefix + "/key/"),
        session_(fmt::format("{}/session/{:016x}", access.endpoint.prefix, lease_)),
        settings_(std::move(settings)),
        cluster_(access.endpoint, std::move(user), *settings_, host) {}
  Status begin_lease(const Deadline& deadline) {
    MEMSPAN_PASS(cluster_.authenticate(deadline));
    auto granted = cluster_.call(kGrant, grant_request(lease_, kLeaseSeconds), deadline);
    // The number is unique, so an attempt without an answer has made the lease.
    if (!granted.is_ok() &&
        granted.status().message().find("lease already exists") == std::string::npos)
      return granted.status();
    streams_ = std::make_unique<Streams>(cluster_, *settings_, lease_,
                                         std::chrono::seconds(kLeaseSeconds));
    MEMSPAN_PASS(streams_->start());
    const Transaction enter{.conditions = {{.of = Of::kCreation, .key = session_, .revision = 0}},
                            .writes = {{.key = session_, .value = member_, .lease = lease_}},
                            .reads = {session_},
                            .otherwise = {}};
    MEMSPAN_PASS_ASSIGN(auto text,
                        cluster_.call(kTransaction, transaction_request(enter), deadline));
    MEMSPAN_TRY_ASSIGN(const TransactionAnswer answer, read_transaction(text), "etcd");
    const KeyValue* const before = find(answer.found, session_);
    if (!answer.is_done && before == nullptr)
      return {Code::kInternal, "etcd contradicts itself about this member's key"};
    number_ = static_cast<std::uint64_t>(answer.is_done ? answer.revision : before->created);
    return Status::ok();
  }

  // A child made by fork() ends nothing: the parent owns the lease.
  ~EtcdStore() override {
    if (process_ == ::getpid())
      end();
    else if (streams_ != nullptr)
      streams_->forget_in_child();
  }

  Status set(std::string_view key, std::string_view value, Deadline deadline,
             KeyLife life) override {
    MEMSPAN_PASS_ASSIGN(const std::string full, full_key(key, deadline));
    MEMSPAN_PASS(check_store_value(value));
    MEMSPAN_PASS_ASSIGN(
        auto written,
        write({.key = full, .value = value, .lease = life == KeyLife::kLease ? lease_ : 0}, {},
              deadline));
    return written ? Status::ok()
                   : Status(Code::kInternal, "etcd refuses a write without a reason");
  }

  Result<std::string> get(std::string_view key, Deadline deadline) override {
    MEMSPAN_PASS_ASSIGN(const std::string full, full_key(key, deadline));
    MEMSPAN_PASS_ASSIGN(const RangeAnswer seen, read(full, deadline));
    if (!seen.keys.empty()) return seen.keys.front().value;
    // Shared with the sink, which sets it once.
    const auto arrival = std::make_shared<std::promise<std::string>>();
    std::future<std::string> value = arrival->get_future();
    const std::uint64_t watch = streams_->add(
        {.key = full,
         .end = {},
         .next = seen.revision + 1,
         .known = {},
         .sink = [arrival, has_come = false](const WatchMessage::Change& change) mutable {
           if (!change.is_removed && !std::exchange(has_come, true))
             arrival->set_value(change.now.value);
         }});
    Status status;
    while (status.is_ok() && value.wait_until(deadline.within(HttpCalls::kLook).when()) !=
                                 std::future_status::ready) {
      if (cluster_.has_ended())
        status = cluster_.status();
      else if (host_.is_interrupted())
        status = host_.interruption();
      else if (deadline.has_passed())
        status = {Code::kTimeout, fmt::format("missing \"{}\"", key)};
    }
    streams_->remove(watch);
    if (!status.is_ok()) return status;
    return value.get();
  }

  Result<std::string> get_now(std::string_view key, Deadline deadline) override {
    MEMSPAN_PASS_ASSIGN(const std::string full, full_key(key, deadline));
    MEMSPAN_PASS_ASSIGN(const auto seen, read(full, deadline));
    if (seen.keys.empty()) return Status(Code::kNotFound, "there is no such key");
    return seen.keys.front().value;
  }

  Result<std::string> compare_and_swap(std::string_view key, std::string_view expected,
                                       std::string_view desired, Deadline deadline,
                                       KeyLife life) override {
    MEMSPAN_PASS_ASSIGN(const std::string full, full_key(key, deadline));
    MEMSPAN_PASS(check_store_value(desired));
    for (;;) {
      MEMSPAN_PASS_ASSIGN(const auto seen, read(full, deadline));
      const KeyValue now = seen.keys.empty() ? KeyValue{} : seen.keys.front();
      if (now.value != expected) return now.value;
      const LeaseId lease = life == KeyLife::kLease ? lease_ : now.lease;
      MEMSPAN_PASS_ASSIGN(auto written, write({.key = full, .value = desired, .lease = lease},
                                              now.modified, deadline));
      if (written) return std::string(desired);
    }
  }

  Result<bool> remove(std::string_view key, Deadline deadline) override {
    MEMSPAN_PASS_ASSIGN(const std::string full, full_key(key, deadline));
    for (;;) {
      MEMSPAN_PASS_ASSIGN(const auto seen, read(full, deadline));
      if (seen.keys.empty()) return false;
      MEMSPAN_PASS_ASSIGN(auto written,
                          write({.key = full, .value = {}}, seen.keys.front().modified, deadline));
      if (written) return true;
    }
  }

  Result<StoreListing> list(std::string_view prefix, Deadline deadline) override {
    MEMSPAN_PASS(check(deadline));
    const std::string full = keys_ + std::string(prefix);
    MEMSPAN_PASS_ASSIGN(auto answer, read(full, deadline, end_of_prefix(full)));
    StoreListing listing;
    std::size_t bytes = 0;
    for (KeyValue& each : answer.keys) {
      std::string key = without_prefix(each.key);
      bytes += key.size() + each.value.size();
      MEMSPAN_PASS(check_store_listing(bytes));
      listing.emplace_back(std::move(key), std::move(each.value));
    }
    return listing;
  }

  Result<std::uint64_t> watch(std::string_view prefix, StoreWatcher watcher,
                              Deadline deadline) override {
    MEMSPAN_PASS(check(deadline));
    const std::string full = keys_ + std::string(prefix);
    // Existing keys are not reported, but after a compaction their removal may have to be.
    MEMSPAN_PASS_ASSIGN(auto now, read(full, deadline, end_of_prefix(full), Reading::kKeysOnly));
    MEMSPAN_TRY_ASSIGN(const auto watchers, start_watchers(), "watching");
    const auto calls = std::make_shared<WatchCalls>(std::move(watcher));
    std::map<std::string, Revision> known;
    for (KeyValue& each : now.keys) known.emplace(std::move(each.key), each.modified);
    const std::uint64_t id = streams_->add(
        {.key = full,
         .end = end_of_prefix(full),
         .next = now.revision + 1,
         .known = std::move(known),
         .sink = [this, watchers, calls](const WatchMessage::Change& change) {
           StoreChange reported{
               .event = change.is_removed ? StoreEvent::kRemoved : StoreEvent::kSet,
               .key = without_prefix(change.now.key),
               .value = change.is_removed ? std::string() : change.now.value};
           watchers->call_soon([calls, reported = std::move(reported)] { calls->call(reported); });
         }});
    MutexLock lock(mutex_);
    watches_[id] = calls;
    return id;
  }

  Status unwatch(std::uint64_t watch, Deadline deadline) override {
    Status state = check(deadline);
    if (state.code() == Code::kForked) return state;
    std::shared_ptr<WatchCalls> over;
    {
      MutexLock lock(mutex_);
      if (auto found = watches_.extract(watch); !found.empty()) over = std::move(found.mapped());
    }
    Status removed(Code::kNotFound, "there is no such watch");
    if (over != nullptr) {
      streams_->remove(watch);
      removed = over->end(deadline);
    }
    return state.is_ok() ? removed : state;
  }

  void end() override {
    if (process_ != ::getpid()) return;
    std::shared_ptr<EventLoop> watchers;
    {
      MutexLock lock(mutex_);
      if (std::exchange(has_ended_, true)) return;
      watchers = watchers_;
    }
    const bool has_lease = streams_ != nullptr && !cluster_.has_ended();
    cluster_.end({Code::kStoreLost, "this member has ended its lease"});
    if (streams_ != nullptr) streams_->stop();
    if (watchers != nullptr) watchers->stop();
    if (has_lease)
      static_cast<void>(cluster_.call(kRevoke, lease_request(lease_), Deadline::after(kGoodbye),
                                      Cluster::Call::kLast));
  }

  std::uint64_t lease() const override { return number_; }
  const std::string& member() const override { return member_; }

 private:
  struct Mark {
    std::uint64_t number = 0;
    Revision written = 0;  // 0: never
  };

  // Ok, or why the call cannot be served.
  Status check(const Deadline& deadline) {
    if (process_ != ::getpid())
      return {Code::kForked,
              fmt::format("the connection to the store belongs to process {}", process_)};
    if (cluster_.has_ended()) return cluster_.status();
    if (deadline.has_passed()) return {Code::kTimeout, "the deadline passed before the call"};
    return Status::ok();
  }

  // The key at etcd, or why the call cannot be served.
  Result<std::string> full_key(std::string_view key, const Deadline& deadline) {
    MEMSPAN_PASS(check_store_key(key));
    MEMSPAN_PASS(check(deadline));
    return keys_ + std::string(key);
  }

  // The loop whose thread calls the watchers, one after the other. It begins with the first watch.
  Result<std::shared_ptr<EventLoop>> start_watchers() MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (has_ended_) return Status(Code::kStoreLost, "the lease has ended");
    if (watchers_ == nullptr) {
      MEMSPAN_PASS_ASSIGN(watchers_, EventLoop::start("a store's watchers"));
      // A loop's thread takes no signals, but what a watcher starts may run the program's code.
      sigset_t signals;
      pthread_sigmask(SIG_SETMASK, nullptr, &signals);
      watchers_->call_soon([signals] { pthread_sigmask(SIG_SETMASK, &signals, nullptr); });
    }
    return watchers_;
  }

  // One key, or all in [key, end).
  Result<RangeAnswer> read(std::string_view key, const Deadline& deadline,
                           std::string_view end = {}, Reading reading = Reading::kWhole) {
    MEMSPAN_PASS_ASSIGN(auto text,
                        cluster_.call(kRange, range_request(key, end, reading), deadline));
    return read_range(text);
  }

  // True: it is written. False: the key has another revision than `expected`, or the lease that it
  // should keep has ended.
  Result<bool> write(Transaction::Write what, std::optional<Revision> expected,
                     const Deadline& deadline) {
    const Mark mark = take_mark();
    const std::string mark_key = fmt::format("{}/write/{}", session_, mark.number);
    // The mark records the outcome of the first attempt to arrive. A later attempt, even during
    // another write, finds the mark changed and does nothing.
    const Transaction::Condition unchanged{
        .of = Of::kLastWrite, .key = mark_key, .revision = mark.written};
    Transaction transaction{.conditions = {{.of = Of::kCreation,
                                            .key = session_,
                                            .revision = static_cast<Revision>(number_)},
                                           unchanged},
                            .writes = {what, {.key = mark_key, .value = kDone, .lease = lease_}},
                            .reads = {session_, mark_key},
                            .otherwise = Transaction::Otherwise{
                                .condition = unchanged,
                                .write = {.key = mark_key, .value = kRefused, .lease = lease_}}};
    if (expected)
      transaction.conditions.push_back(
          {.of = Of::kLastWrite, .key = what.key, .revision = *expected});
    auto text = cluster_.call(kTransaction, transaction_request(transaction), deadline);
    // Without an answer an attempt may still arrive, so the mark is not reused.
    if (text.code() == Code::kStale) {
      if (what.lease != 0 && what.lease != lease_) return false;
      return lose();
    }
    if (text.code() == Code::kOutOfMemory)
      return text.status().annotate(
          "etcd refuses the value (its limits are --max-request-bytes and --quota-backend-bytes)");
    if (!text.is_ok()) return text.status();
    MEMSPAN_PASS_ASSIGN(auto answer, read_transaction(*text));
    return judge(answer, mark, mark_key);
  }

  Result<bool> judge(const TransactionAnswer& answer, const Mark& mark,
                     const std::string& mark_key) {
    bool was_written = answer.is_done;
    Revision written = answer.revision;
    if (!answer.is_done) {
      const KeyValue* const session = find(answer.found, session_);
      if (session == nullptr || session->created != static_cast<Revision>(number_)) return lose();
      const KeyValue* const now = find(answer.found, mark_key);
      // An attempt whose answer was lost arrived first.
      if (now != nullptr && now->modified != mark.written) {
        was_written = now->value == kDone;
        written = now->modified;
      }
    }
    MutexLock lock(mutex_);
    marks_.push_back({.number = mark.number, .written = written});
    return was_written;
  }

  Mark take_mark() MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (marks_.empty()) return {.number = ++last_mark_};
    const Mark mark = marks_.back();
    marks_.pop_back();
    return mark;
  }

  Status lose() {
    cluster_.end({Code::kStoreLost, "etcd has ended this member's lease"});
    return cluster_.status();
  }

  std::string without_prefix(const std::string& key) const { return key.substr(keys_.size()); }

  const std::string member_;
  const pid_t process_ = ::getpid();
  const EtcdHost host_;
  const std::string keys_;  // "PREFIX/key/"
  const LeaseId lease_ = new_lease();
  const std::string session_;  // "PREFIX/session/ID"
  std::uint64_t number_ = 0;
  const std::unique_ptr<HttpSettings> settings_;
  Cluster cluster_;
  std::unique_ptr<Streams> streams_;
  Mutex mutex_;
  bool has_ended_ MEMSPAN_GUARDED_BY(mutex_) = false;
  std::uint64_t last_mark_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  std::vector<Mark> marks_ MEMSPAN_GUARDED_BY(mutex_);
  std::shared_ptr<EventLoop> watchers_ MEMSPAN_GUARDED_BY(mutex_);  // shared with the sinks
  // By their ids in streams_. Shared with the sinks and the calls of the loop.
  std::map<std::uint64_t, std::shared_ptr<WatchCalls>> watches_ MEMSPAN_GUARDED_BY(mutex_);
};

Result<std::unique_ptr<KeyValueStore>> connect(const StoreAccess& access, const EtcdHost& host,
                                               Deadline deadline) {
  MEMSPAN_TRY_ASSIGN(EtcdUser user, EtcdUser::read(access.endpoint.user), "connecting to etcd");
  MEMSPAN_TRY_ASSIGN(auto settings, HttpSettings::create(access.security, host),
                     "connecting to etcd");
  auto store = std::make_unique<EtcdStore>(access, std::move(user), std::move(settings), host);
  MEMSPAN_TRY(store->begin_lease(deadline),
              fmt::format("connecting to {}", access.endpoint.to_string()));
  return std::unique_ptr<KeyValueStore>(std::move(store));
}

}  // namespace

}  // namespace memspan::etcd

// The only function that libmemspan_etcd.so exports.
extern "C" __attribute__((visibility("default"))) const memspan::EtcdModule* memspan_etcd_module() {
  static constexpr memspan::EtcdModule kModule{MEMSPAN_VERSION, memspan::etcd::connect};
  return &kModule;
}
