// SPDX-License-Identifier: Apache-2.0
// memspan-info: what memspan is and finds on this host, for people and bug reports.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "core/cpu.h"
#include "core/environment.h"
#include "device/choice.h"
#include "device/cuda/driver.h"
#include "info/routes.h"
#include "memory/budget.h"
#include "node/host_identity.h"
#include "transport/message/ucx/ucx_carrier.h"
#include "transport/registry.h"

namespace memspan {
namespace {

void line(std::string_view what, std::string_view value) {
  fmt::print("{:<12} {}\n", what, value);
}

// What pools and spaces take their device memory from.
void show_devices() {
  const Result<Device*> chosen = chosen_device();
  line("device", chosen.is_ok() ? fmt::format("{}: in use", (*chosen)->name())
                                : fmt::format("none: {}", chosen.status().message()));
  const Result<std::string> cuda = cuda::describe_devices();
  line("", fmt::format("cuda: {}",
                       cuda.is_ok() ? *cuda + " (MEMSPAN_DEVICE=cuda)" : cuda.status().message()));
}

Status show() {
  line("version", MEMSPAN_VERSION);
  line("host", host_identity());
  line("cores",
       fmt::format("{} usable of {} online", usable_cores(), sysconf(_SC_NPROCESSORS_ONLN)));

  MEMSPAN_TRY_ASSIGN(MemoryBudget budget, measure_memory_budget(), "measuring memory");
  line("memory", fmt::format("{} available of {}, bounded by {}", format_size(budget.available),
                             format_size(budget.total), budget.source));

  MEMSPAN_TRY_ASSIGN(const AllowedTransports allowed, AllowedTransports::from_environment(),
                     "choosing a transport");
  std::string_view what = "transport";
  for (const TransportEntry& entry : transports()) {
    line(what,
         fmt::format("{}: {}{}", entry.name, entry.what,
                     allowed.has(entry.name) ? "" : " (MEMSPAN_TRANSPORT does not allow it)"));
    what = "";
  }
  line("engine MTE", allowed.has("mapped") ? "in use: the caller's own loads and stores"
                                           : "no: peers are not mapped");
  show_devices();
  line("engine SDMA", "the copy engines of a CUDA device, for its memory; else the caller copies");
  line("carrier", "socket: Unix sockets in one network namespace, else TCP");
  line("", has_ucx_module() ? "ucx: what UCX finds on the network (MEMSPAN_CARRIER=ucx)"
                            : "ucx: not in this installation (libmemspan_ucx.so is missing)");
  line("engine RoCE", "not by itself; the carrier ucx uses RDMA where UCX finds it");
  return Status::ok();
}

}  // namespace
}  // namespace memspan

namespace {

int fail(const memspan::Status& status) {
  std::fprintf(stderr, "memspan-info: %s\n", status.message().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view word = argc > 1 ? argv[1] : "";
  if (word.empty() || word == "--routes") {
    const memspan::Status status = word.empty() ? memspan::show() : memspan::show_routes();
    return status.is_ok() ? 0 : fail(status);
  }
  if (word == "--version") {
    std::puts("memspan-info " MEMSPAN_VERSION);
  } else if (word == "--help" || word == "-h") {
    std::puts(
        "Usage: memspan-info [--routes | --version]\nSays what memspan finds on this host.\n"
        "--routes, in a job (oshrun -n 4 memspan-info --routes): which transport is between which "
        "PEs.");
  } else {
    std::fprintf(stderr, "memspan-info: there is no option \"%s\"; see memspan-info --help\n",
                 argv[1]);
    return 2;
  }
  return 0;
}
