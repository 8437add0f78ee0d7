// SPDX-License-Identifier: Apache-2.0
// memspan-info: what memspan is and finds on this host, for people and bug reports.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "core/cpu.h"
#include "core/environment.h"
#include "device/reservation.h"
#include "memory/budget.h"
#include "transport/host_identity.h"
#include "transport/registry.h"

namespace memspan {
namespace {

void line(std::string_view what, std::string_view value) {
  fmt::print("{:<12} {}\n", what, value);
}

Status show() {
  line("version", MEMSPAN_VERSION);
  line("host", host_identity());
  line("cores",
       fmt::format("{} usable of {} online", usable_cores(), sysconf(_SC_NPROCESSORS_ONLN)));

  MEMSPAN_TRY_ASSIGN(MemoryBudget budget, measure_memory_budget(), "measuring memory");
  line("memory", fmt::format("{} available of {}, bounded by {}", format_size(budget.available),
                             format_size(budget.total), budget.source));

  MEMSPAN_TRY_ASSIGN(Reservation range, Reservation::make(page_size(), nullptr),
                     "reserving a page of addresses");
  TransportRegistry registry;
  add_builtin_transports(registry, range);
  MEMSPAN_TRY_ASSIGN(auto transport, registry.choose(environment_or("MEMSPAN_TRANSPORT", "")),
                     "choosing a transport");
  const Capabilities& can = transport->capabilities();
  line("transport", fmt::format("{} (loads and stores: {}, native atomics: {}, ordered: {})",
                                transport->name(), can.direct ? "yes" : "no",
                                can.native_atomics ? "yes" : "no", can.ordered ? "yes" : "no"));
  line("engine MTE",
       can.direct ? "in use: the caller's own loads and stores" : "no: peers are not mapped");
  line("engine SDMA", "not in this version; the caller copies");
  line("engine RoCE", "not in this version; jobs run on one host");
  return Status::ok();
}

}  // namespace
}  // namespace memspan

int main(int argc, char** argv) {
  if (argc > 1) {
    const std::string_view word = argv[1];
    if (word == "--version") {
      std::puts("memspan-info " MEMSPAN_VERSION);
    } else if (word == "--help" || word == "-h") {
      std::puts("Usage: memspan-info [--version]\nSays what memspan finds on this host.");
    } else {
      std::fprintf(stderr, "memspan-info: there is no option \"%s\"; see memspan-info --help\n",
                   argv[1]);
      return 2;
    }
    return 0;
  }
  if (memspan::Status status = memspan::show(); !status.is_ok()) {
    std::fprintf(stderr, "memspan-info: %s\n", status.message().c_str());
    return 1;
  }
  return 0;
}
