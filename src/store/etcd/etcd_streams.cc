// SPDX-License-Identifier: Apache-2.0
#include "store/etcd/etcd_streams.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/thread.h"

namespace memspan::etcd {
namespace {

// Limit of a renewal: a stopped or isolated member never answers.
constexpr Duration kRenewalLimit = std::chrono::seconds(1);
// Pause before a failed stream or renewal is retried.
constexpr Duration kPause = std::chrono::milliseconds(100);
// etcd ends a lease, and a new leader does so late. After this many lifetimes without a renewal it
// counts as lost, because others may have the member's keys.
constexpr int kPatienceInLives = 5;
// The thread checks at least this often.
constexpr Duration kLongestSleep = std::chrono::seconds(1);

constexpr const char* kWatch = "/v3/watch";
constexpr const char* kRangePath = "/v3/kv/range";
constexpr const char* kKeepAlive = "/v3/lease/keepalive";
constexpr Duration kListingLimit = std::chrono::seconds(5);

}  // namespace

Streams::Streams(Cluster& cluster, const HttpSettings& settings, LeaseId lease,
                 Duration time_to_live)
    : cluster_(cluster), settings_(settings), lease_(lease), time_to_live_(time_to_live) {
  transfers_.emplace(kRenewal, std::make_unique<Transfer>(settings));
}

Streams::~Streams() {
  stop();
}

Status Streams::start() {
  if (multi_ == nullptr || transfers_.at(kRenewal)->handle() == nullptr)
    return {Code::kOutOfMemory, "no memory for the connections to etcd"};
  MEMSPAN_TRY_ASSIGN(thread_, start_thread("the streams of etcd", [this] { run(); }), "etcd");
  return Status::ok();
}

void Streams::stop() {
  if (!thread_.joinable()) return;
  is_stopping_.store(true, std::memory_order_release);  // pairs with run()
  curl_multi_wakeup(multi_.get());
  thread_.join();
}

void Streams::forget_in_child() {
  if (thread_.joinable()) thread_.detach();
}

std::uint64_t Streams::add(Watched watched) {
  MutexLock lock(mutex_);
  watches_.emplace(++last_watch_, std::move(watched));
  curl_multi_wakeup(multi_.get());
  return last_watch_;
}

void Streams::remove(std::uint64_t watch) {
  MutexLock lock(mutex_);
  watches_.erase(watch);
  curl_multi_wakeup(multi_.get());
}

void Streams::run() {
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

void Streams::begin(Transfer& transfer, const char* path, std::string body, Duration limit,
                    HttpRequest::Stream stream) {
  transfer.turn = cluster_.turn();
  transfer.failure = Status::ok();
  transfer.prepare(cluster_.at(transfer.turn), path, std::move(body), cluster_.token(), limit,
                   std::move(stream));
  transfer.is_under_way = curl_multi_add_handle(multi_.get(), transfer.handle()) == CURLM_OK;
  if (!transfer.is_under_way) transfer.not_before = Clock::now() + kPause;
}

void Streams::abandon(Transfer& transfer) {
  if (std::exchange(transfer.is_under_way, false))
    curl_multi_remove_handle(multi_.get(), transfer.handle());
}

// Closes the streams of ended watches and of abandoned members.
void Streams::close_strays() {
  MutexLock lock(mutex_);
  std::erase_if(transfers_, [&](auto& entry) MEMSPAN_ATTRIBUTE_(no_thread_safety_analysis) {
    if (entry.first == kRenewal) return false;
    const bool is_over = !watches_.contains(entry.first);
    if (is_over || entry.second->turn != cluster_.turn()) abandon(*entry.second);
    return is_over;
  });
}

void Streams::open_watches() {
  MutexLock lock(mutex_);
  for (const auto& [id, watched] : watches_) {
    auto& entry = transfers_[id];
    if (entry == nullptr) entry = std::make_unique<Transfer>(settings_);
    Transfer& transfer = *entry;
    if (!transfer.is_due()) continue;
    transfer.watch = id;
    if (transfer.is_listing)
      begin(transfer, kRangePath, range_request(watched.key, watched.end), kListingLimit);
    else
      begin(transfer, kWatch, watch_request(watched.key, watched.end, watched.next),
            Duration::zero(),
            [this, &transfer](std::string& received) { return take_lines(transfer, received); });
  }
}

void Streams::renew() {
  Transfer& renewal = *transfers_.at(kRenewal);
  if (!renewal.is_due() || cluster_.has_ended()) return;
  renewal_sent_ = Clock::now();
  begin(renewal, kKeepAlive, lease_request(lease_), kRenewalLimit);
}

Clock::time_point Streams::next_moment() const {
  Clock::time_point next = Clock::now() + kLongestSleep;
  for (const auto& [id, transfer] : transfers_)
    if (!transfer->is_under_way) next = std::min(next, transfer->not_before);
  return next;
}

void Streams::finish(Transfer& transfer, CURLcode code) {
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

void Streams::try_again(Transfer& transfer, const Status& failed) {
  transfer.not_before = Clock::now() + kPause;
  if (is_token_refused(failed))
    static_cast<void>(cluster_.authenticate(Deadline::after(kRenewalLimit)));
  else
    cluster_.give_up(transfer.turn);
}

void Streams::finish_renewal(Transfer& renewal, const Result<std::string>& answer) {
  const auto left = answer.is_ok() ? read_keep_alive(*answer) : answer.status();
  if (left.is_ok() && *left > 0) {
    renewed_ = renewal_sent_;
    renewal.not_before = renewal_sent_ + time_to_live_ / 3;
    return;
  }
  const double silent = to_seconds(Clock::now() - renewed_);
  if (left.is_ok() || left.code() == Code::kStale)
    return cluster_.end({Code::kStoreLost,
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

bool Streams::take_lines(Transfer& transfer, std::string& received) {
  std::size_t begin = 0;
  bool goes_on = true;
  for (std::size_t end = 0; goes_on && (end = received.find('\n', begin)) != std::string::npos;
       begin = end + 1)
    goes_on = take_line(transfer, std::string_view(received).substr(begin, end - begin));
  received.erase(0, begin);
  return goes_on;
}

bool Streams::take_line(Transfer& transfer, std::string_view line) {
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

void Streams::take(Watched& watched, const WatchMessage& message) {
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

// Reports what has changed since the last report, but not in which steps.
Status Streams::take_listing(std::uint64_t watch, std::string_view answer) {
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

}  // namespace memspan::etcd
