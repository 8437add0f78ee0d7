// SPDX-License-Identifier: Apache-2.0
// One thread for continuous work: it renews the lease, and it holds a stream for every watch. All
// use the cluster's current member. A failed renewal moves them to the next member, where each
// watch continues after the last revision that it has reported.
#pragma once

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>

#include "core/thread.h"
#include "store/etcd/cluster.h"
#include "store/etcd/etcd_messages.h"

namespace memspan::etcd {

inline constexpr const char* kRange = "/v3/kv/range";

// The keys of a watch, and its progress. A value.
struct Watched {
  // Called with a lock of the streams held: it must be fast and may not call them.
  using Sink = std::function<void(const WatchMessage::Change&)>;

  std::string key;
  std::string end;                        // empty: the one key
  Revision next = 0;                      // the first not reported yet
  std::map<std::string, Revision> known;  // existing keys, with their last writes
  Sink sink;
};

// Thread-safe.
class Streams : NotCopyable {
 public:
  // `lease` was just granted for `time_to_live`. When it ends, or renewals fail for long, the
  // thread calls cluster.end().
  Streams(Cluster& cluster, const HttpSettings& settings, LeaseId lease, Duration time_to_live)
      : cluster_(cluster), settings_(settings), lease_(lease), time_to_live_(time_to_live) {
    transfers_.emplace(kRenewal, std::make_unique<Transfer>(settings));
  }

  ~Streams() { stop(); }

  Status start() {
    if (multi_ == nullptr || transfers_.at(kRenewal)->handle() == nullptr)
      return {Code::kOutOfMemory, "no memory for the connections to etcd"};
    MEMSPAN_TRY_ASSIGN(thread_, start_thread("the streams of etcd", [this] { run(); }), "etcd");
    return Status::ok();
  }

  // After this returns, no sink runs or begins.
  void stop() MEMSPAN_EXCLUDES(mutex_) {
    if (!thread_.joinable()) return;
    is_stopping_.store(true, std::memory_order_release);  // pairs with run()
    curl_multi_wakeup(multi_.get());
    thread_.join();
  }

  // For a child made by fork(), which has no such thread.
  void forget_in_child() {
    if (thread_.joinable()) thread_.detach();
  }

  std::uint64_t add(Watched watched) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    watches_.emplace(++last_watch_, std::move(watched));
    curl_multi_wakeup(multi_.get());
    return last_watch_;
  }

  // After this returns, the sink does not run or begin.
  void remove(std::uint64_t watch) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    watches_.erase(watch);
    curl_multi_wakeup(multi_.get());
  }

 private:
  // Limit of a renewal: a stopped or isolated member never answers.
  static constexpr Duration kRenewalLimit = std::chrono::seconds(1);
  static constexpr Duration kListingLimit = std::chrono::seconds(5);
  // Pause before a failed stream or renewal is retried.
  static constexpr Duration kPause = std::chrono::milliseconds(100);
  // etcd ends a lease, and a new leader does so late. After this many lifetimes without a renewal
  // it counts as lost, because others may have the member's keys.
  static constexpr int kPatienceInLives = 5;
  // The thread checks at least this often.
  static constexpr Duration kLongestSleep = std::chrono::seconds(1);
  static constexpr std::uint64_t kRenewal = 0;  // in place of a watch's number

  // One pending request. Only for the network thread.
  struct Transfer : HttpRequest {
    using HttpRequest::HttpRequest;
    bool is_due() const { return !is_under_way && not_before <= Clock::now(); }

    std::uint64_t turn = 0;
    std::uint64_t watch = kRenewal;
    bool is_compacted = false;  // etcd no longer has the stream's changes
    bool is_listing = false;    // a listing replaces them
    bool is_under_way = false;
    Status failure;  // reported by the stream
    Clock::time_point not_before{};
  };

  void run() {
    while (!is_stopping_.load(std::memory_order_acquire)) {
      close_strays();
      renew();
      open_watches();
      int running = 0;
      curl_multi_perform(multi_.get(), &running);
      int left = 0;
      while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
        if (message->msg != CURLMSG_DONE) continue;
        char* request = nullptr;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &request);
        finish(static_cast<Transfer&>(*reinterpret_cast<HttpRequest*>(request)),
               message->data.result);
      }
      const auto sleep =
          std::clamp<Duration>(next_moment() - Clock::now(), Duration::zero(), kLongestSleep);
      curl_multi_poll(multi_.get(), nullptr, 0,
                      static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(sleep).count()),
                      nullptr);
    }
    for (auto& [id, transfer] : transfers_) abandon(*transfer);
    transfers_.clear();
  }

  // Closes the streams of ended watches and of abandoned members.
  void close_strays() MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    std::erase_if(transfers_, [&](auto& entry) MEMSPAN_ATTRIBUTE_(no_thread_safety_analysis) {
      if (entry.first == kRenewal) return false;
      const bool is_over = !watches_.contains(entry.first);
      if (is_over || entry.second->turn != cluster_.turn()) abandon(*entry.second);
      return is_over;
    });
  }

  void open_watches() MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    for (const auto& [id, watched] : watches_) {
      auto& entry = transfers_[id];
      if (entry == nullptr) entry = std::make_unique<Transfer>(settings_);
      Transfer& transfer = *entry;
      if (!transfer.is_due()) continue;
      transfer.watch = id;
      if (transfer.is_listing)
        begin(transfer, kRange, range_request(watched.key, watched.end), kListingLimit);
      else
        begin(transfer, "/v3/watch", watch_request(watched.key, watched.end, watched.next),
              Duration::zero(),
              [this, &transfer](std::string& received) { return take_lines(transfer, received); });
    }
  }

  void renew() {
    Transfer& renewal = *transfers_.at(kRenewal);
    if (!renewal.is_due() || cluster_.has_ended()) return;
    renewal_sent_ = Clock::now();
    begin(renewal, "/v3/lease/keepalive", lease_request(lease_), kRenewalLimit);
  }

  void finish(Transfer& transfer, CURLcode code) {
    auto answer = transfer.finish(code);
    abandon(transfer);
    if (transfer.watch == kRenewal) return finish_renewal(transfer, answer);
    if (std::exchange(transfer.is_compacted, false)) {
      transfer.is_listing = true;
      return;
    }
    Status status = transfer.failure.is_ok() ? answer.status() : transfer.failure;
    if (status.is_ok() && transfer.is_listing) {
      status = take_listing(transfer.watch, *answer);
      transfer.is_listing = !status.is_ok();
      if (status.is_ok()) return;
    }
    // A stream that ends without a failure is of a member that is ending.
    try_again(transfer, status);
  }

  void finish_renewal(Transfer& renewal, const Result<std::string>& answer) {
    const auto left = answer.is_ok() ? read_keep_alive(*answer) : answer.status();
    if (left.is_ok() && *left > 0) {
      renewed_ = renewal_sent_;
      renewal.not_before = renewal_sent_ + time_to_live_ / 3;
      return;
    }
    const double silent = to_seconds(Clock::now() - renewed_);
    if (left.is_ok() || left.code() == Code::kStale)
      return cluster_.end(
          {Code::kStoreLost,
           fmt::format("etcd has ended this member's lease, which was renewed {:.1f} "
                       "s ago",
                       silent)});
    if (Clock::now() - renewed_ > kPatienceInLives * time_to_live_)
      return cluster_.end(
          {Code::kStoreLost,
           fmt::format("no member of {} has renewed this member's lease for {:.1f} "
                       "s: {}",
                       cluster_.address().to_string(), silent, left.status().message())});
    try_again(renewal, left.status());
  }

  void try_again(Transfer& transfer, const Status& failed) {
    transfer.not_before = Clock::now() + kPause;
    if (is_token_refused(failed))
      static_cast<void>(cluster_.authenticate(Deadline::after(kRenewalLimit)));
    else
      cluster_.give_up(transfer.turn);
  }

  bool take_lines(Transfer& transfer, std::string& received) MEMSPAN_EXCLUDES(mutex_) {
    std::size_t begin = 0;
    bool goes_on = true;
    for (std::size_t end = 0; goes_on && (end = received.find('\n', begin)) != std::string::npos;
         begin = end + 1)
      goes_on = take_line(transfer, std::string_view(received).substr(begin, end - begin));
    received.erase(0, begin);
    return goes_on;
  }

  bool take_line(Transfer& transfer, std::string_view line) MEMSPAN_EXCLUDES(mutex_) {
    if (line.empty()) return true;
    auto message = read_watch(line);
    transfer.failure = message.status();
    if (!message.is_ok()) return false;
    transfer.is_compacted = message->is_compacted;
    MutexLock lock(mutex_);
    if (const auto watched = watches_.find(transfer.watch); watched != watches_.end())
      take(watched->second, *message);
    return !message->is_compacted;
  }

  // Reports what has changed since the last report, but not in which steps.
  Status take_listing(std::uint64_t watch, std::string_view answer) MEMSPAN_EXCLUDES(mutex_) {
    MEMSPAN_PASS_ASSIGN(auto listing, read_range(answer));
    MutexLock lock(mutex_);
    const auto found = watches_.find(watch);
    if (found == watches_.end()) return Status::ok();
    Watched& watched = found->second;
    WatchMessage message;
    auto gone = watched.known;
    for (KeyValue& each : listing.keys) {
      gone.erase(each.key);
      if (each.modified >= watched.next) message.changes.push_back({false, std::move(each)});
    }
    std::sort(message.changes.begin(), message.changes.end(),
              [](const auto& a, const auto& b) { return a.now.modified < b.now.modified; });
    for (const auto& [key, modified] : gone)
      message.changes.insert(message.changes.begin(),
                             {true, KeyValue{.key = key, .value = {}, .modified = watched.next}});
    take(watched, message);
    watched.next = std::max(watched.next, listing.revision + 1);
    return Status::ok();
  }

  void take(Watched& watched, const WatchMessage& message) MEMSPAN_REQUIRES(mutex_) {
    for (const auto& change : message.changes) {
      if (change.now.modified < watched.next) continue;  // reported before the stream moved
      if (change.is_removed)
        watched.known.erase(change.now.key);
      else
        watched.known[change.now.key] = change.now.modified;
      watched.sink(change);
    }
    for (const auto& change : message.changes)
      watched.next = std::max(watched.next, change.now.modified + 1);
  }

  void begin(Transfer& transfer, const char* path, std::string body, Duration limit,
             HttpRequest::Stream stream = nullptr) {
    transfer.turn = cluster_.turn();
    transfer.failure = Status::ok();
    transfer.prepare(cluster_.at(transfer.turn), path, std::move(body), cluster_.token(), limit,
                     std::move(stream));
    transfer.is_under_way = curl_multi_add_handle(multi_.get(), transfer.handle()) == CURLM_OK;
    if (!transfer.is_under_way) transfer.not_before = Clock::now() + kPause;
  }

  void abandon(Transfer& transfer) {
    if (std::exchange(transfer.is_under_way, false))
      curl_multi_remove_handle(multi_.get(), transfer.handle());
  }

  Clock::time_point next_moment() const {
    Clock::time_point next = Clock::now() + kLongestSleep;
    for (const auto& [id, transfer] : transfers_)
      if (!transfer->is_under_way) next = std::min(next, transfer->not_before);
    return next;
  }

  Cluster& cluster_;
  const HttpSettings& settings_;
  const LeaseId lease_;
  const Duration time_to_live_;
  const MultiHandle multi_{curl_multi_init()};
  std::atomic<bool> is_stopping_ = false;
  Mutex mutex_;
  std::map<std::uint64_t, Watched> watches_ MEMSPAN_GUARDED_BY(mutex_);
  std::uint64_t last_watch_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  // Only for the network thread.
  std::map<std::uint64_t, std::unique_ptr<Transfer>> transfers_;  // by watch
  Clock::time_point renewed_ = Clock::now();  // when the last successful request was sent
  Clock::time_point renewal_sent_ = Clock::now();
  std::thread thread_;
};

}  // namespace memspan::etcd
