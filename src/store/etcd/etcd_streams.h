// SPDX-License-Identifier: Apache-2.0
// One thread for continuous work: it renews the lease, and it holds a stream for every watch. All
// use the cluster's current member. A failed renewal moves them to the next member, where each
// watch continues after the last revision that it has reported.
#pragma once

#include <curl/curl.h>

#include <atomic>
#include <map>
#include <thread>

#include "store/etcd/cluster.h"
#include "store/etcd/etcd_messages.h"

namespace memspan::etcd {

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
  Streams(Cluster& cluster, const HttpSettings& settings, LeaseId lease, Duration time_to_live);
  ~Streams();

  Status start();
  // After this returns, no sink runs or begins.
  void stop() MEMSPAN_EXCLUDES(mutex_);
  // For a child made by fork(), which has no such thread.
  void forget_in_child();

  std::uint64_t add(Watched watched) MEMSPAN_EXCLUDES(mutex_);
  // After this returns, the sink does not run or begin.
  void remove(std::uint64_t watch) MEMSPAN_EXCLUDES(mutex_);

 private:
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

  void run();
  void close_strays() MEMSPAN_EXCLUDES(mutex_);
  void open_watches() MEMSPAN_EXCLUDES(mutex_);
  void renew();
  void finish(Transfer& transfer, CURLcode code);
  void finish_renewal(Transfer& renewal, const Result<std::string>& answer);
  void try_again(Transfer& transfer, const Status& failed);
  bool take_lines(Transfer& transfer, std::string& received) MEMSPAN_EXCLUDES(mutex_);
  bool take_line(Transfer& transfer, std::string_view line) MEMSPAN_EXCLUDES(mutex_);
  Status take_listing(std::uint64_t watch, std::string_view answer) MEMSPAN_EXCLUDES(mutex_);
  void take(Watched& watched, const WatchMessage& message) MEMSPAN_REQUIRES(mutex_);
  void begin(Transfer& transfer, const char* path, std::string body, Duration limit,
             HttpRequest::Stream stream = nullptr);
  void abandon(Transfer& transfer);
  Clock::time_point next_moment() const;

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
