// SPDX-License-Identifier: Apache-2.0
#include "observe/call_table.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <new>

#include "core/environment.h"
#include "core/log.h"
#include "core/private_file.h"
#include "core/thread.h"

namespace memspan {
namespace {

std::string microseconds(double nanoseconds) {
  return fmt::format("{:.3f}", nanoseconds * 1e-3);
}

std::string now_as_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[sizeof "2026-01-01 00:00:00"];
  const std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  return {text, length};
}

constexpr std::string_view kLine =
    "{:<19} {:<40} {:>12} {:>12} {:>8} {:>8} {:>12} {:>12} {:>12} {:>14}\n";

}  // namespace

CallTable& call_table() {
  static CallTable* const only = new CallTable;
  return *only;
}

void forget_call_table_in_child() {
  new (&call_table()) CallTable;  // the parent's threads may hold it
}

void CallTable::begin(const char* call) {
  MutexLock lock(mutex_);
  ++rows_[call].begun;
}

void CallTable::end(const char* call, std::uint64_t nanoseconds, bool is_good) {
  MutexLock lock(mutex_);
  Row& row = rows_[call];
  ++(is_good ? row.good : row.bad);
  if (!is_good) return;
  const std::uint64_t took = std::max<std::uint64_t>(nanoseconds, 1);
  row.total_ns += took;
  row.least_ns = std::min(row.least_ns, took);
  row.most_ns = std::max(row.most_ns, took);
}

std::string CallTable::heading() {
  return fmt::format(kLine, "TIME", "NAME", "BEGIN", "GOOD_END", "BAD_END", "ON_FLY", "MIN(us)",
                     "MAX(us)", "AVG(us)", "TOTAL(us)");
}

std::string CallTable::rows(std::string_view time) const {
  MutexLock lock(mutex_);
  std::string text;
  for (const auto& [call, row] : rows_) {
    const auto total = static_cast<double>(row.total_ns);
    const auto good = static_cast<double>(row.good);
    text +=
        fmt::format(kLine, time, call, row.begun, row.good, row.bad, row.begun - row.good - row.bad,
                    microseconds(row.good == 0 ? 0 : static_cast<double>(row.least_ns)),
                    microseconds(static_cast<double>(row.most_ns)),
                    microseconds(row.good == 0 ? 0 : total / good), microseconds(total));
  }
  return text;
}

Status add_call_table(const std::string& path, bool begins_anew, std::size_t most_bytes) {
  MEMSPAN_PASS_ASSIGN(const Fd file, open_output_file(path, O_WRONLY | O_APPEND, 0644));
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return Status::from_errno("looking at " + path);
  std::string text = call_table().rows(now_as_text());
  const auto there = static_cast<std::size_t>(status.st_size);
  if (begins_anew || there == 0 || there + text.size() > most_bytes) {
    if (ftruncate(file.get(), 0) != 0) return Status::from_errno("emptying " + path);
    text.insert(0, CallTable::heading());
  }
  const int error = write_all(file.get(), text);
  return error == 0 ? Status::ok() : Status::from_errno("writing " + path, error);
}

Result<std::unique_ptr<CallTableFile>> CallTableFile::start_if_asked() {
  const std::string folder = environment_or("MEMSPAN_PTRACER", "");
  if (folder.empty()) return std::unique_ptr<CallTableFile>();
  std::unique_ptr<CallTableFile> made(
      new CallTableFile(fmt::format("{}/ptracer_{}.dat", folder, getpid())));
  made->write();
  MEMSPAN_TRY_ASSIGN(made->thread_,
                     start_thread("the table of calls", [file = made.get()] { file->run(); }),
                     "MEMSPAN_PTRACER");
  return made;
}

CallTableFile::~CallTableFile() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(mutex_);
    is_ending_ = true;
    ends_.notify_all();
  }
  thread_.join();
}

void CallTableFile::run() {
  for (bool is_over = false; !is_over;) {
    {
      const Deadline next = Deadline::after(kPeriod);
      MutexLock lock(mutex_);
      while (!is_ending_ && !next.has_passed()) ends_.wait_until(mutex_, next);
      is_over = is_ending_;
    }
    write();
  }
}

void CallTableFile::write() {
  const Status added = add_call_table(path_, !std::exchange(has_begun_, true), kMostBytes);
  if (!added.is_ok() && !std::exchange(has_warned_, true))
    log_line(LogLevel::kWarn, fmt::format("the table of calls is lost: {}", added.message()));
}

}  // namespace memspan
