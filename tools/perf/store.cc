// SPDX-License-Identifier: Apache-2.0
#include "perf/store.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <shmem.h>
#include <smem/host/smem.h>
#include <sys/socket.h>

#include "core/fd.h"

namespace memspan::perf {
namespace {

// The kernel's choice; 0 when it has none.
std::size_t free_port() {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return 0;
  return ntohs(address.sin_port);
}

std::string loopback(std::size_t port) {
  return fmt::format("tcp://127.0.0.1:{}", port);
}

// Another process may take the port before we listen on it.
std::size_t host_store() {
  constexpr int kAttempts = 10;
  for (int i = 0; i < kAttempts; ++i) {
    const std::size_t port = free_port();
    if (port != 0 && smem_create_config_store(loopback(port).c_str()) == SMEM_OK) return port;
  }
  return 0;
}

}  // namespace

Result<std::string> meeting_store(Meter& meter) {
  if (!meter.plan().store.empty()) return meter.plan().store;
  const std::size_t port = meter.agree(meter.rank() == 0 ? host_store() : 0);
  if (port == 0)
    return Status(Code::kUnavailable, fmt::format("PE 0 cannot host a store on the loopback: {}",
                                                  smem_get_last_err_msg()));
  return loopback(port);
}

void leave_together(const std::function<void()>& destroy,
                    const std::function<void()>& uninitialize) {
  const bool is_host = shmem_my_pe() == 0;
  shmem_barrier_all();
  destroy();
  shmem_barrier_all();
  if (!is_host) uninitialize();
  shmem_barrier_all();
  if (is_host) uninitialize();
}

Status smem_failure(std::string_view call, int code) {
  return {Code::kInternal, fmt::format("{} gave {}: {}", call, code, smem_get_last_err_msg())};
}

}  // namespace memspan::perf
