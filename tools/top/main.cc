// SPDX-License-Identifier: Apache-2.0
// memspan-top: what the running jobs, pools and transfer endpoints of this user do.
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "command_line/print.h"
#include "net/metrics_server.h"
#include "observe/metrics.h"
#include "top/options.h"
#include "top/print.h"
#include "top/screen.h"
#include "top/scroll.h"
#include "top/view.h"

namespace memspan::top {
namespace {

std::string names_of(const std::vector<std::string>& groups) {
  return groups.empty() ? "none" : fmt::format("{}", fmt::join(groups, ", "));
}

Status print(const View& view, const Options& options) {
  if (options.is_json) return command_line::print_all(json_of(view) + "\n");
  const Table table = table_of(view, options.order, kAnyWidth);
  return command_line::print_all(
      fmt::format("{}\n{}\n", fmt::join(table.head, "\n"), fmt::join(table.body, "\n")));
}

// Rates need two looks.
Status run_once(Viewer& viewer, const Options& options) {
  View view = viewer.look(options.order);
  if (options.interval > Duration::zero()) {
    std::this_thread::sleep_for(options.interval);
    view = viewer.look(options.order);
  }
  if (!options.only.empty() && view.groups.empty())
    return {view.nothing.code(),
            fmt::format("{}; there are {}", view.nothing.message(), names_of(view.others))};
  return print(view, options);
}

// Runs as long as its output has a reader.
Status run_as_stream(Viewer& viewer, const Options& options) {
  viewer.look(options.order);
  while (true) {
    std::this_thread::sleep_for(options.interval);
    MEMSPAN_PASS(print(viewer.look(options.order), options));
  }
}

// The order that a key asks for.
Order order_of(char key, Order now) {
  switch (key) {
    case 's':
      return static_cast<Order>((static_cast<int>(now) + 1) % 4);
    case 'r':
      return Order::kRank;
    case 'c':
      return Order::kCalls;
    case 'b':
      return Order::kBytes;
    case 'w':
      return Order::kWaits;
    default:
      return now;
  }
}

// A key that scrolls, or another size, shows the same look again: a rate over the moment between
// two keys would mean nothing.
Status run_on_terminal(Viewer& viewer, const Options& options) {
  MEMSPAN_PASS(Screen::check());
  Screen screen;
  Scroll scroll;
  Order order = options.order;
  while (true) {
    const View view = viewer.look(order);
    const Deadline next = Deadline::after(options.interval);
    char key = 0;
    do {
      const Size size = screen.size();
      screen.show(scroll.page_of(table_of(view, order, size.columns), size.rows));
      key = screen.key(next);
    } while (scroll.take(key) || (key == 0 && !next.has_passed()));
    if (key == 'q') return Status::ok();
    const Order before = std::exchange(order, order_of(key, order));
    if (order != before) scroll.to_top();
  }
}

// Serves all processes of this user on this host.
Status serve(const std::string& place) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, number);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ProcessReader reader;  // of the server's thread
  const auto server = serve_metrics("--metrics", place, [&reader] {
    std::vector<CountersSeen> processes;
    for (const ProcessSeen& seen : reader.look()) processes.push_back(seen.counters);
    return metrics_of(processes);
  });
  if (!server.is_ok()) return server.status();
  MEMSPAN_PASS(
      command_line::print_all(fmt::format("memspan-top: metrics at port {}\n", (*server)->port())));
  int number = 0;
  sigwait(&signals, &number);
  return Status::ok();
}

Status run(int argc, const char* const* argv) {
  MEMSPAN_PASS_ASSIGN(auto options, parse_options(argc, argv));
  if (!options) return Status::ok();
  if (!options->metrics.empty()) return serve(options->metrics);
  Viewer viewer(options->only);
  if (options->is_once) return run_once(viewer, *options);
  if (options->is_json) return run_as_stream(viewer, *options);
  return run_on_terminal(viewer, *options);
}

}  // namespace
}  // namespace memspan::top

int main(int argc, char** argv) {
  const memspan::Status status = memspan::top::run(argc, argv);
  return status.is_ok() ? 0 : memspan::command_line::end_with("memspan-top", status);
}
