// SPDX-License-Identifier: Apache-2.0
#include "transport/message/ucx/native_worker.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "core/bytes.h"
#include "transport/message/ucx/configuration.h"
#include "transport/message/ucx/native_lanes.h"
#include "transport/message/ucx/ucx_request.h"

namespace memspan::ucx {
namespace {

// A waiting thread polls for at least the time of a large piece. Then it sleeps and checks at this
// interval, because another thread may have handled its event.
constexpr auto kLook = std::chrono::microseconds(100);
constexpr int kSleepMs = 1;
// Closing an endpoint by force ends its operations.
constexpr auto kCloseLimit = std::chrono::seconds(2);

Status unreachable(std::string_view why) {
  return {Code::kNotSupported,
          fmt::format("UCX cannot reach the memory of that process directly: {}", why)};
}

// All devices, and no TCP.
Result<ucp_context_h> create_native_context() {
  const std::string transports = without_tcp(environment_or("UCX_TLS", kTransports));
  if (transports.empty()) return Status(Code::kNotSupported, "UCX_TLS names nothing but TCP");
  return create_context(UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP, "", transports);
}

// The native network that an endpoint uses; or empty. UCX before 1.14 does not report it.
std::string network_of([[maybe_unused]] ucp_ep_h endpoint) {
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

}  // namespace

class NativeWorker::Piece final : public NativeMemory {
 public:
  Piece(std::shared_ptr<NativeWorker> worker, std::shared_ptr<Endpoint> endpoint, ucp_rkey_h key,
        std::uint64_t base, std::string lane, bool is_mapped)
      : worker_(std::move(worker)),
        endpoint_(std::move(endpoint)),
        key_(key),
        base_(base),
        lane_(std::move(lane)),
        is_mapped_(is_mapped) {}
  ~Piece() override { worker_->release(*endpoint_, key_); }

  Status put(std::uint64_t offset, const void* from, std::size_t bytes,
             const GiveUp& give_up) override {
    return worker_->put(*endpoint_, key_, base_ + offset, from, bytes, give_up);
  }
  Status get(void* to, std::uint64_t offset, std::size_t bytes, const GiveUp& give_up) override {
    return worker_->get(*endpoint_, key_, to, base_ + offset, bytes, give_up);
  }
  bool is_mapped() const override { return is_mapped_; }
  std::string_view lane() const override { return lane_; }

 private:
  const std::shared_ptr<NativeWorker> worker_;  // shared with the carrier
  const std::shared_ptr<Endpoint> endpoint_;    // shared with the worker
  const ucp_rkey_h key_;
  const std::uint64_t base_;
  const std::string lane_;
  const bool is_mapped_;
};

NativeWorker::NativeWorker() : process_(::getpid()) {}

bool NativeWorker::is_foreign() const {
  return ::getpid() != process_;
}

Result<std::shared_ptr<NativeWorker>> NativeWorker::create(int gate) {
  const QuietUcx quiet;
  std::shared_ptr<NativeWorker> worker(new NativeWorker);
  MEMSPAN_PASS(worker->start(gate));
  return worker;
}

Status NativeWorker::start(int gate) {
  MEMSPAN_TRY_ASSIGN(context_, create_native_context(), "starting UCX");
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  // Our mutex serializes our calls. But UCX's own thread for connection events changes the flags of
  // endpoints, and only in this mode does a call keep it out.
  params.thread_mode = UCS_THREAD_MODE_MULTI;
  MEMSPAN_PASS(from_ucs("ucp_worker_create", ucp_worker_create(context_, &params, &worker_)));
  MEMSPAN_PASS(from_ucs("ucp_worker_get_efd", ucp_worker_get_efd(worker_, &descriptor_)));
  ucp_address_t* address = nullptr;
  std::size_t length = 0;
  MEMSPAN_PASS(
      from_ucs("ucp_worker_get_address", ucp_worker_get_address(worker_, &address, &length)));
  address_.assign(reinterpret_cast<const char*>(address), length);
  ucp_worker_release_address(worker_, address);
  MutexLock lock(mutex_);
  gate_.start(gate, descriptor_);
  progress_and_arm();
  return Status::ok();
}

NativeWorker::~NativeWorker() {
  // In a child of fork() the UCX objects are the parent's.
  if (is_foreign()) return;
  const QuietUcx quiet;
  MutexLock lock(mutex_);
  gate_.end();
  const Deadline limit = Deadline::after(kCloseLimit);
  for (const auto& [address, endpoint] : endpoints_) close(*endpoint, limit);
  registrations_.retract_all(context_);
  if (worker_ != nullptr) ucp_worker_destroy(worker_);
  if (context_ != nullptr) ucp_cleanup(context_);
}

Result<std::string> NativeWorker::key(std::byte* base, std::size_t bytes) {
  if (is_foreign()) return unreachable("this is another process");
  const QuietUcx quiet;
  MutexLock lock(mutex_);
  return registrations_.key(context_, address_, base, bytes);
}

void NativeWorker::retract(const std::byte* base, std::size_t bytes) {
  if (is_foreign()) return;
  MutexLock lock(mutex_);
  registrations_.retract(context_, base, bytes);
}

std::uint64_t NativeWorker::registrations() {
  MutexLock lock(mutex_);
  return registrations_.count();
}

void NativeWorker::on_failure(void* endpoint, ucp_ep_h, ucs_status_t status) {
  static_cast<Endpoint*>(endpoint)->failure = ucs_status_string(status);
}

Result<std::shared_ptr<NativeWorker::Endpoint>> NativeWorker::connect(const std::string& address) {
  if (const auto found = endpoints_.find(address); found != endpoints_.end()) return found->second;
  auto endpoint = std::make_shared<Endpoint>();  // shared with the pieces that use it
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler = {on_failure, endpoint.get()};
  const ucs_status_t made = ucp_ep_create(worker_, &params, &endpoint->handle);
  if (made != UCS_OK) return unreachable(ucs_status_string(made));
  endpoints_.emplace(address, endpoint);
  return endpoint;
}

Result<std::unique_ptr<NativeMemory>> NativeWorker::open(std::string_view key) {
  ByteReader in(key);
  const std::string address(in.text());
  const std::uint64_t base = in.u64();
  const std::string packed(in.text());
  if (!in.is_finished()) return unreachable("the key is none of UCX's");
  if (is_foreign()) return unreachable("this is another process");
  const QuietUcx quiet;
  MutexLock lock(mutex_);
  auto connected = connect(address);
  if (!connected.is_ok()) return connected.status();
  Endpoint& endpoint = **connected;
  if (endpoint.handle == nullptr || !endpoint.failure.empty()) return unreachable("it has failed");
  ucp_rkey_h opened = nullptr;
  const ucs_status_t status = ucp_ep_rkey_unpack(endpoint.handle, packed.data(), &opened);
  if (status != UCS_OK) return unreachable(ucs_status_string(status));
  const std::string network = network_of(endpoint.handle);
  // Shared memory reaches only memory made for it; UCX would emulate the rest over it.
  void* mapped = nullptr;
  const bool is_shared = ucp_rkey_ptr(opened, base, &mapped) == UCS_OK;
  progress_and_arm();
  if (!is_shared && network.empty()) {
    ucp_rkey_destroy(opened);
    return unreachable("its transports need the peer's processor");
  }
  return std::unique_ptr<NativeMemory>(
      std::make_unique<Piece>(shared_from_this(), std::move(connected).value(), opened, base,
                              is_shared ? "shared memory" : network, is_shared));
}

// Keys of an endpoint closed by force point to it, so they stay with UCX until the worker ends.
void NativeWorker::release(const Endpoint& endpoint, ucp_rkey_h key) {
  if (is_foreign()) return;
  MutexLock lock(mutex_);
  if (endpoint.handle != nullptr) ucp_rkey_destroy(key);
}

// `begin` runs with the mutex held and returns the requests that it began.
template <typename Begin>
Status NativeWorker::run(Endpoint& endpoint, const GiveUp& give_up, Begin begin) {
  if (is_foreign()) return {Code::kUnavailable, "this is another process"};
  Requests requests{};
  {
    MutexLock lock(mutex_);
    if (endpoint.handle == nullptr || !endpoint.failure.empty())
      return {Code::kUnavailable, endpoint.failure};
    requests = begin(endpoint.handle);
    if (are_done(requests)) return collect(endpoint, requests);
    gate_.close();
  }
  return finish(endpoint, requests, give_up);
}

Status NativeWorker::put(Endpoint& endpoint, ucp_rkey_h key, std::uint64_t to, const void* from,
                         std::size_t bytes, const GiveUp& give_up) {
  return run(endpoint, give_up, [&](ucp_ep_h handle) {
    const ucp_request_param_t how{};
    Requests requests{ucp_put_nbx(handle, from, bytes, to, key, &how)};
    // The flush ends when the bytes are in the peer's memory.
    if (!UCS_PTR_IS_ERR(requests[0])) requests[1] = ucp_ep_flush_nbx(handle, &how);
    return requests;
  });
}

Status NativeWorker::get(Endpoint& endpoint, ucp_rkey_h key, void* to, std::uint64_t from,
                         std::size_t bytes, const GiveUp& give_up) {
  return run(endpoint, give_up, [&](ucp_ep_h handle) {
    const ucp_request_param_t how{};
    return Requests{ucp_get_nbx(handle, to, bytes, from, key, &how)};
  });
}

bool NativeWorker::are_done(const Requests& requests) {
  return !is_pending(requests[0]) && !is_pending(requests[1]);
}

Status NativeWorker::collect(const Endpoint& endpoint, const Requests& requests) {
  const ucs_status_t moved = end(requests[0]);
  const ucs_status_t flushed = end(requests[1]);
  const ucs_status_t status = moved != UCS_OK ? moved : flushed;
  if (status == UCS_OK) return Status::ok();
  return {Code::kUnavailable,
          fmt::format("{}: {}", endpoint.failure.empty() ? "UCX" : endpoint.failure,
                      ucs_status_string(status))};
}

// The gate is closed.
Status NativeWorker::finish(Endpoint& endpoint, Requests requests, const GiveUp& give_up) {
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
void NativeWorker::end_early(Endpoint& endpoint, const Requests& requests) {
  const Deadline limit = Deadline::after(kCloseLimit);
  MutexLock lock(mutex_);
  if (endpoint.failure.empty()) endpoint.failure = "a call was given up";
  close(endpoint, limit);
  while (!are_done(requests) && !limit.has_passed()) ucp_worker_progress(worker_);
  open_gate();
  if (are_done(requests)) [[maybe_unused]]
    const Status ended = collect(endpoint, requests);
}

void NativeWorker::close(Endpoint& endpoint, const Deadline& limit) {
  if (endpoint.handle == nullptr) return;
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  how.flags = UCP_EP_CLOSE_FLAG_FORCE;
  ucs_status_ptr_t request = ucp_ep_close_nbx(std::exchange(endpoint.handle, nullptr), &how);
  while (is_pending(request) && !limit.has_passed()) ucp_worker_progress(worker_);
  if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);
}

void NativeWorker::progress() {
  // The worker is armed, so its descriptor shows events. The thread that serves the streams calls
  // this each time; arming again would cost a small message some microseconds.
  pollfd one{descriptor_, POLLIN, 0};
  if (is_foreign() || ::poll(&one, 1, 0) != 1) return;
  const QuietUcx quiet;
  MutexLock lock(mutex_);
  progress_and_arm();
}

void NativeWorker::open_gate() {
  if (gate_.is_last()) progress_and_arm();
  gate_.open();
}

void NativeWorker::progress_and_arm() {
  do {
    while (ucp_worker_progress(worker_) != 0) continue;
  } while (ucp_worker_arm(worker_) == UCS_ERR_BUSY);
}

}  // namespace memspan::ucx
