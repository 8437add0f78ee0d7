// SPDX-License-Identifier: Apache-2.0
// One-sided access by UCX, with its own context and worker beside those of the streams. The first
// use sets them up: most jobs have no network for it, or no large transfer.
//
// The context has no TCP, so an operation either uses a network that reaches the peer's memory by
// itself or cannot begin. It has no port: an endpoint is made from the address in a key, and keys
// are sent over connections whose ends know each other.
//
// The engine watches an epoll (the gate), which shows the worker's descriptor while no thread waits
// in a call. A waiting thread serves the worker itself.
#pragma once

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <ucp/api/ucp.h>

#include <array>
#include <map>

#include "core/bytes.h"
#include "core/fd.h"
#include "core/mutex.h"
#include "transport/message/carrier.h"
#include "transport/message/ucx/configuration.h"
#include "transport/message/ucx/native_lanes.h"

namespace memspan::ucx {

// Thread-safe. Outlives the pieces of memory that it opened. A key for a peer is the worker's
// address, the range's, and UCX's key.
//
// All UCX calls hold the mutex, always briefly.
class NativeWorker final : public NativeAccess, NotCopyable {
 public:
  // `streams`: the descriptor of the carrier's other worker. Without an epoll it can neither watch
  // that one, which listening reports.
  explicit NativeWorker(int streams) : gate_(::epoll_create1(EPOLL_CLOEXEC)) {
    epoll_event event{.events = EPOLLIN, .data = {}};
    if (::epoll_ctl(gate_.get(), EPOLL_CTL_ADD, streams, &event) != 0) gate_.reset();
  }

  ~NativeWorker() override {
    // In a child of fork() the UCX objects are the parent's.
    if (is_foreign()) return;
    const QuietUcx quiet;
    MutexLock lock(mutex_);
    const Deadline limit = Deadline::after(kCloseLimit);
    for (auto& [address, endpoint] : endpoints_) close(endpoint, limit);
    for (const auto& [base, one] : ranges_) ucp_mem_unmap(context_, one.memory);
    if (worker_ != nullptr) ucp_worker_destroy(worker_);
    if (context_ != nullptr) ucp_cleanup(context_);
  }

  // For both workers: an epoll, which the engine watches.
  int descriptor() const { return gate_.get(); }
  std::uint64_t registrations() const override { return registrations_.load(); }

  Result<std::string> key(std::byte* base, std::size_t bytes) override {
    if (is_foreign()) return unreachable("this is another process");
    const QuietUcx quiet;
    MutexLock lock(mutex_);
    MEMSPAN_PASS(begin());
    if (const auto found = ranges_.find(base); found != ranges_.end()) {
      if (found->second.bytes == bytes) return found->second.key;
      return Status(Code::kNotSupported, "a part of that memory is registered with UCX");
    }
    ucp_mem_map_params_t params{};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    params.address = base;
    params.length = bytes;
    ucp_mem_h memory = nullptr;
    MEMSPAN_PASS(from_ucs("ucp_mem_map", ucp_mem_map(context_, &params, &memory)));
    void* packed = nullptr;
    std::size_t length = 0;
    Status status = from_ucs("ucp_rkey_pack", ucp_rkey_pack(context_, memory, &packed, &length));
    if (!status.is_ok()) {
      ucp_mem_unmap(context_, memory);
      return status;
    }
    ByteWriter out;
    out.text(address_);
    out.u64(reinterpret_cast<std::uintptr_t>(base));
    out.text({static_cast<const char*>(packed), length});
    ucp_rkey_buffer_release(packed);
    registrations_.fetch_add(1);
    return ranges_.emplace(base, Registered{bytes, memory, out.take()}).first->second.key;
  }

  void retract(std::byte* base, std::size_t bytes) override {
    if (is_foreign()) return;
    MutexLock lock(mutex_);
    for (auto one = ranges_.lower_bound(base); one != ranges_.end() && one->first < base + bytes;
         one = ranges_.erase(one))
      ucp_mem_unmap(context_, one->second.memory);
  }

  Result<std::unique_ptr<NativeMemory>> open(std::string_view key) override {
    if (is_foreign()) return unreachable("this is another process");
    const QuietUcx quiet;
    MutexLock lock(mutex_);
    MEMSPAN_PASS(begin());
    ByteReader in(key);
    const std::string address(in.text());
    const std::uint64_t base = in.u64();
    const std::string packed(in.text());
    if (!in.is_finished()) return unreachable("the key is not one that UCX made");
    MEMSPAN_PASS_ASSIGN(Endpoint* const endpoint, connect(address));
    if (endpoint->handle == nullptr || !endpoint->failure.empty())
      return unreachable("it has failed");
    ucp_rkey_h opened = nullptr;
    const ucs_status_t status = ucp_ep_rkey_unpack(endpoint->handle, packed.data(), &opened);
    if (status != UCS_OK) return unreachable(ucs_status_string(status));
    const std::string network = network_of(endpoint->handle);
    // Shared memory reaches only memory made for it; UCX would emulate the rest over it.
    void* mapped = nullptr;
    const bool is_shared = ucp_rkey_ptr(opened, base, &mapped) == UCS_OK;
    progress_and_arm();
    if (!is_shared && network.empty()) {
      ucp_rkey_destroy(opened);
      return unreachable("its transports need the peer's processor");
    }
    return std::unique_ptr<NativeMemory>(std::make_unique<Piece>(
        *this, *endpoint, opened, base, is_shared ? "shared memory" : network, is_shared));
  }

  // For the thread that serves that descriptor.
  void progress() {
    // The worker is armed, so its descriptor shows events. The thread that serves the streams calls
    // this each time; arming again would cost a small message some microseconds.
    if (!is_ready_.load(std::memory_order_acquire) || is_foreign()) return;
    pollfd one{descriptor_, POLLIN, 0};
    if (::poll(&one, 1, 0) != 1) return;
    const QuietUcx quiet;
    MutexLock lock(mutex_);
    progress_and_arm();
  }

 private:
  // A waiting thread polls for at least the time of a large piece. Then it sleeps and checks at
  // this interval, because another thread may have handled its event.
  static constexpr auto kLook = std::chrono::microseconds(100);
  static constexpr int kSleepMs = 1;
  // Closing an endpoint by force ends its operations.
  static constexpr auto kCloseLimit = std::chrono::seconds(2);

  static Status unreachable(std::string_view why) {
    return {Code::kNotSupported,
            fmt::format("UCX cannot reach the memory of that process directly: {}", why)};
  }

  // All devices, and no TCP.
  static Result<ucp_context_h> create_native_context() {
    const std::string transports = without_tcp(environment_or("UCX_TLS", kTransports));
    if (transports.empty()) return Status(Code::kNotSupported, "UCX_TLS names nothing but TCP");
    return create_context(UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP, "", transports);
  }

  // The native network that an endpoint uses; or empty. UCX before 1.14 does not report it.
  static std::string network_of([[maybe_unused]] ucp_ep_h endpoint) {
#if UCP_API_VERSION >= UCP_VERSION(1, 14)
    std::array<ucp_transport_entry_t, 32> entries{};
    ucp_ep_attr_t attributes{};
    attributes.field_mask = UCP_EP_ATTR_FIELD_TRANSPORTS;
    attributes.transports = {entries.data(), entries.size(), sizeof entries[0]};
    if (ucp_ep_query(endpoint, &attributes) != UCS_OK) return {};
    for (unsigned i = 0; i < attributes.transports.num_entries; ++i)
      if (is_native_network(entries[i].transport_name)) return entries[i].transport_name;
#endif
    return {};
  }

  static bool is_pending(ucs_status_ptr_t request) {
    return UCS_PTR_IS_PTR(request) && ucp_request_check_status(request) == UCS_INPROGRESS;
  }

  // The status of an ended one, which it frees.
  static ucs_status_t end(ucs_status_ptr_t request) {
    if (!UCS_PTR_IS_PTR(request)) return UCS_PTR_STATUS(request);
    const ucs_status_t status = ucp_request_check_status(request);
    ucp_request_free(request);
    return status;
  }

  // Leads to one peer. UCX passes its address to callbacks.
  struct Endpoint {
    ucp_ep_h handle = nullptr;  // null when it was closed
    std::string failure;
  };
  struct Registered {
    std::size_t bytes;
    ucp_mem_h memory;
    std::string key;
  };
  using Requests = std::array<ucs_status_ptr_t, 2>;

  class Piece final : public NativeMemory {
   public:
    Piece(NativeWorker& worker, Endpoint& endpoint, ucp_rkey_h key, std::uint64_t base,
          std::string lane, bool is_mapped)
        : worker_(worker),
          endpoint_(endpoint),
          key_(key),
          base_(base),
          lane_(std::move(lane)),
          is_mapped_(is_mapped) {}
    // Keys of an endpoint closed by force point to it, so they stay with UCX until the worker ends.
    ~Piece() override {
      if (worker_.is_foreign()) return;
      MutexLock lock(worker_.mutex_);
      if (endpoint_.handle != nullptr) ucp_rkey_destroy(key_);
    }

    Status move(MoveDirection direction, std::byte* local, std::uint64_t offset, std::size_t bytes,
                const GiveUp& give_up) override {
      if (worker_.is_foreign()) return {Code::kUnavailable, "this is another process"};
      Requests requests{};
      {
        MutexLock lock(worker_.mutex_);
        ucp_ep_h const handle = endpoint_.handle;
        if (handle == nullptr || !endpoint_.failure.empty())
          return {Code::kUnavailable, endpoint_.failure};
        const ucp_request_param_t how{};
        if (direction == MoveDirection::kGet)
          requests[0] = ucp_get_nbx(handle, local, bytes, base_ + offset, key_, &how);
        else
          requests[0] = ucp_put_nbx(handle, local, bytes, base_ + offset, key_, &how);
        // The flush of a put ends when the bytes are in the peer's memory.
        if (direction == MoveDirection::kPut && !UCS_PTR_IS_ERR(requests[0]))
          requests[1] = ucp_ep_flush_nbx(handle, &how);
        if (worker_.are_done(requests)) return worker_.collect(endpoint_, requests);
        worker_.close_gate();
      }
      return worker_.finish(endpoint_, requests, give_up);
    }
    bool is_mapped() const override { return is_mapped_; }
    std::string_view lane() const override { return lane_; }

   private:
    NativeWorker& worker_;
    Endpoint& endpoint_;
    const ucp_rkey_h key_;
    const std::uint64_t base_;
    const std::string lane_;
    const bool is_mapped_;
  };

  bool is_foreign() const {
    return process_.is_foreign();
  }

  // Sets up UCX, unless it was tried.
  Status begin() MEMSPAN_REQUIRES(mutex_) {
    if (std::exchange(has_begun_, true)) return begun_;
    begun_ = start();
    if (begun_.is_ok()) is_ready_.store(true, std::memory_order_release);
    return begun_;
  }

  Status start() MEMSPAN_REQUIRES(mutex_) {
    MEMSPAN_TRY_ASSIGN(context_, create_native_context(), "starting UCX");
    MEMSPAN_PASS(create_worker(context_, worker_, descriptor_));
    ucp_address_t* address = nullptr;
    std::size_t length = 0;
    MEMSPAN_PASS(
        from_ucs("ucp_worker_get_address", ucp_worker_get_address(worker_, &address, &length)));
    address_.assign(reinterpret_cast<const char*>(address), length);
    ucp_worker_release_address(worker_, address);
    set_gate(EPOLL_CTL_ADD, EPOLLIN);
    progress_and_arm();
    return Status::ok();
  }

  static void on_failure(void* endpoint, ucp_ep_h, ucs_status_t status) {
    static_cast<Endpoint*>(endpoint)->failure = ucs_status_string(status);
  }

  Result<Endpoint*> connect(const std::string& address) MEMSPAN_REQUIRES(mutex_) {
    const auto [found, is_new] = endpoints_.try_emplace(address);
    Endpoint& endpoint = found->second;
    if (!is_new) return &endpoint;
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                        UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address = reinterpret_cast<const ucp_address_t*>(address.data());
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler = {on_failure, &endpoint};
    const ucs_status_t made = ucp_ep_create(worker_, &params, &endpoint.handle);
    if (made == UCS_OK) return &endpoint;
    endpoints_.erase(found);
    return unreachable(ucs_status_string(made));
  }

  bool are_done(const Requests& requests) MEMSPAN_REQUIRES(mutex_) {
    return !is_pending(requests[0]) && !is_pending(requests[1]);
  }

  Status collect(const Endpoint& endpoint, const Requests& requests) MEMSPAN_REQUIRES(mutex_) {
    const ucs_status_t moved = end(requests[0]);
    const ucs_status_t flushed = end(requests[1]);
    const ucs_status_t status = moved != UCS_OK ? moved : flushed;
    if (status == UCS_OK) return Status::ok();
    return {Code::kUnavailable,
            fmt::format("{}: {}", endpoint.failure.empty() ? "UCX" : endpoint.failure,
                        ucs_status_string(status))};
  }

  // The gate is closed.
  Status finish(Endpoint& endpoint, Requests requests, const GiveUp& give_up) {
    const Deadline looks_until = Deadline::after(kLook);
    while (true) {
      bool may_sleep = looks_until.has_passed();
      {
        MutexLock lock(mutex_);
        while (!are_done(requests) && ucp_worker_progress(worker_) != 0) continue;
        if (are_done(requests)) {
          open_gate();
          return collect(endpoint, requests);
        }
        may_sleep = may_sleep && ucp_worker_arm(worker_) == UCS_OK;
      }
      // Without the mutex: give_up() may run the program's code.
      if (Status why = give_up(); !why.is_ok()) {
        end_early(endpoint, requests);
        return why;
      }
      pollfd one{descriptor_, POLLIN, 0};
      if (may_sleep) ::poll(&one, 1, kSleepMs);
    }
  }

  // Closes the endpoint, so that nothing touches the caller's memory any more.
  void end_early(Endpoint& endpoint, const Requests& requests) {
    const Deadline limit = Deadline::after(kCloseLimit);
    MutexLock lock(mutex_);
    if (endpoint.failure.empty()) endpoint.failure = "a call was given up";
    close(endpoint, limit);
    while (!are_done(requests) && !limit.has_passed()) ucp_worker_progress(worker_);
    open_gate();
    if (are_done(requests)) [[maybe_unused]]
      const Status ended = collect(endpoint, requests);
  }

  void close(Endpoint& endpoint, const Deadline& limit) MEMSPAN_REQUIRES(mutex_) {
    if (endpoint.handle == nullptr) return;
    ucs_status_ptr_t request = close_by_force(std::exchange(endpoint.handle, nullptr));
    while (is_pending(request) && !limit.has_passed()) ucp_worker_progress(worker_);
    if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);
  }

  // Makes all possible progress; then the descriptor shows later events.
  void progress_and_arm() MEMSPAN_REQUIRES(mutex_) {
    do {
      while (ucp_worker_progress(worker_) != 0) continue;
    } while (ucp_worker_arm(worker_) == UCS_ERR_BUSY);
  }

  void set_gate(int operation, std::uint32_t events) MEMSPAN_REQUIRES(mutex_) {
    epoll_event event{.events = events, .data = {}};
    ::epoll_ctl(gate_.get(), operation, descriptor_, &event);
  }

  void close_gate() MEMSPAN_REQUIRES(mutex_) {
    if (waiting_++ == 0) set_gate(EPOLL_CTL_MOD, 0);
  }

  void open_gate() MEMSPAN_REQUIRES(mutex_) {
    if (--waiting_ != 0) return;
    progress_and_arm();
    set_gate(EPOLL_CTL_MOD, EPOLLIN);
  }

  const OwnProcess process_;
  Fd gate_;
  std::atomic<bool> is_ready_{false};  // UCX is set up; then these are constant
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int descriptor_ = -1;
  std::string address_;
  std::atomic<std::uint64_t> registrations_{0};

  Mutex mutex_;
  bool has_begun_ MEMSPAN_GUARDED_BY(mutex_) = false;
  Status begun_ MEMSPAN_GUARDED_BY(mutex_);
  int waiting_ MEMSPAN_GUARDED_BY(mutex_) = 0;                                // threads in calls
  std::map<const std::byte*, Registered> ranges_ MEMSPAN_GUARDED_BY(mutex_);  // until retracted
  // By the peer's address. They live as long as the worker.
  std::map<std::string, Endpoint> endpoints_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace memspan::ucx
