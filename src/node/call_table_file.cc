// SPDX-License-Identifier: Apache-2.0
#include "node/call_table_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <string_view>
#include <utility>

#include "core/environment.h"
#include "core/fd.h"
#include "core/log.h"
#include "core/output_file.h"
#include "core/thread.h"
#include "node/call_table.h"

namespace memspan {
namespace {

std::string now_as_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[sizeof "2026-01-01 00:00:00"];
  const std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  return {text, length};
}

}  // namespace

Status add_call_table(const std::string& path, bool begins_anew, std::size_t most_bytes) {
  const auto opened = open_output_file(path, O_WRONLY | O_APPEND, 0644);
  if (!opened.is_ok()) return opened.status();
  const Fd& file = opened.value();
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return Status::from_errno("looking at " + path);
  std::string text = call_table().rows(now_as_text());
  const auto there = static_cast<std::size_t>(status.st_size);
  if (begins_anew || there == 0 || there + text.size() > most_bytes) {
    if (ftruncate(file.get(), 0) != 0) return Status::from_errno("emptying " + path);
    text.insert(0, CallTable::heading());
  }
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t written = ::write(file.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Status::from_errno("writing " + path);
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  return Status::ok();
}

Result<std::unique_ptr<CallTableFile>> CallTableFile::start_if_asked() {
  constexpr std::int64_t kPeriod = 10;
  const std::string folder = environment_or("MEMSPAN_PTRACER", "");
  if (folder.empty()) return std::unique_ptr<CallTableFile>();
  const auto seconds = environment_integer("MEMSPAN_PTRACER_SECONDS", 1, 86400);
  if (!seconds.is_ok()) return seconds.status();
  std::unique_ptr<CallTableFile> made(
      new CallTableFile(fmt::format("{}/ptracer_{}.dat", folder, getpid()),
                        std::chrono::seconds(seconds->value_or(kPeriod))));
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
  Deadline next = Deadline::after(period_);
  while (true) {
    bool is_over = false;
    {
      MutexLock lock(mutex_);
      while (!is_ending_ && !next.has_passed()) ends_.wait_until(mutex_, next);
      is_over = is_ending_;
    }
    write();
    if (is_over) return;
    next = Deadline::after(period_);
  }
}

void CallTableFile::write() {
  const Status added = add_call_table(path_, !std::exchange(has_begun_, true), kMostBytes);
  if (!added.is_ok() && !std::exchange(has_warned_, true))
    log_line(LogLevel::kWarn, fmt::format("the table of calls is lost: {}", added.message()));
}

}  // namespace memspan
