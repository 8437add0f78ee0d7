// SPDX-License-Identifier: Apache-2.0
// memspan-top: what the running jobs, pools and transfer endpoints of this user do.
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <thread>
#include <vector>

#include "command_line/print.h"
#include "node/counters_metrics.h"
#include "top/options.h"
#include "top/print.h"
#include "top/screen.h"
#include "top/view.h"

namespace memspan::top {
namespace {

Status print(const View& view, const Options& options) {
  std::string text;
  if (options.is_json)
    text = json_of(view) + "\n";
  else
    for (const std::string& line : table_of(view, options.order)) text += line + "\n";
  return command_line::print_all(text);
}

// Rates need two looks.
Status run_once(Viewer& viewer, const Options& options) {
  View view = viewer.look(options.order);
  if (options.interval > Duration::zero()) {
    std::this_thread::sleep_for(options.interval);
    view = viewer.look(options.order);
  }
  return print(view, options);
}

// For as long as somebody reads.
Status run_as_stream(Viewer& viewer, const Options& options) {
  viewer.look(options.order);
  while (true) {
    std::this_thread::sleep_for(options.interval);
    MEMSPAN_PASS(print(viewer.look(options.order), options));
  }
}

bool take_key(char key, Order& order) {
  switch (key) {
    case 'q':
      return false;
    case 's':
      order = static_cast<Order>((static_cast<int>(order) + 1) % 4);
      break;
    case 'r':
      order = Order::kRank;
      break;
    case 'c':
      order = Order::kCalls;
      break;
    case 'b':
      order = Order::kBytes;
      break;
    case 'w':
      order = Order::kWaits;
      break;
    default:
      break;
  }
  return true;
}

Status run_on_terminal(Viewer& viewer, Options options) {
  MEMSPAN_PASS(Screen::check());
  Screen screen;
  while (true) {
    screen.show(table_of(viewer.look(options.order), options.order));
    if (!take_key(screen.key(Deadline::after(options.interval)), options.order))
      return Status::ok();
  }
}

// Of all processes of this user on this host.
Status serve(const std::string& place) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, number);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  CountersReader reader;  // of the server's thread
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
  auto options = parse_options(argc, argv);
  if (!options.is_ok()) return options.status();
  if (!*options) return Status::ok();
  if (!(*options)->metrics.empty()) return serve((*options)->metrics);
  Viewer viewer((*options)->only);
  if ((*options)->is_once) return run_once(viewer, **options);
  if ((*options)->is_json) return run_as_stream(viewer, **options);
  return run_on_terminal(viewer, **options);
}

}  // namespace
}  // namespace memspan::top

int main(int argc, char** argv) {
  const memspan::Status status = memspan::top::run(argc, argv);
  return status.is_ok() ? 0 : memspan::command_line::end_with("memspan-top", status);
}
