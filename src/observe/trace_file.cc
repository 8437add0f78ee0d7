// SPDX-License-Identifier: Apache-2.0
#include "observe/trace_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "core/clock.h"
#include "core/fd.h"
#include "core/private_file.h"
#include "net/host_identity.h"

namespace memspan {
namespace {

constexpr std::string_view kEnd = "\n]}\n";
constexpr Duration kPatience = std::chrono::seconds(10);

std::string json_string(std::string_view text) {
  std::string result = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') result += '\\';
    const auto code = static_cast<unsigned char>(letter);
    result += code < 0x20 ? fmt::format("\\u{:04x}", code) : std::string(1, letter);
  }
  return result + '"';
}

std::string first_line(const TraceOwner& owner) {
  return fmt::format(R"({{"displayTimeUnit":"ns","otherData":{{"owner":{}}},"traceEvents":[)",
                     json_string(owner.name)) +
         "\n";
}

std::string metadata(const TraceOwner& owner, std::string_view what, const std::string& argument) {
  return fmt::format(R"({{"ph":"M","name":"{}","pid":{},"args":{{{}}}}})", what,
                     trace_process_of(owner), argument);
}

std::string name_of_process(const TraceOwner& owner) {
  const std::string who = owner.kind == MemberKind::kJob    ? fmt::format("PE {}", owner.rank)
                          : owner.kind == MemberKind::kPool ? fmt::format("rank {}", owner.rank)
                                                            : owner.name;
  return fmt::format("{} (process {} on {})", who, getpid(), host_name());
}

// Some writers may be busy with large files.
Status lock(const Fd& file, const std::string& path) {
  const Deadline deadline = Deadline::after(kPatience);
  while (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return Status::from_errno("locking " + path);
    if (deadline.has_passed())
      return {Code::kTimeout,
              fmt::format("{} is locked by another process for {} s", path, to_seconds(kPatience))};
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return Status::ok();
}

Result<std::string> read_at(const Fd& file, off_t offset, std::size_t bytes) {
  std::string text(bytes, '\0');
  const ssize_t taken = pread(file.get(), text.data(), bytes, offset);
  if (taken < 0) return Status::from_errno("reading the trace");
  text.resize(static_cast<std::size_t>(taken));
  return text;
}

Status write_at(const Fd& file, off_t offset, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = pwrite(file.get(), text.data(), text.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Status::from_errno("writing the trace");
    text.remove_prefix(static_cast<std::size_t>(written));
    offset += written;
  }
  return Status::ok();
}

// The offset of the next event in a file of this job, or 0 if the file must be rewritten. After a
// writer was killed, writing continues after the last whole line.
Result<off_t> end_of_events(const Fd& file, const TraceOwner& owner) {
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return Status::from_errno("fstat");
  const std::string first = first_line(owner);
  MEMSPAN_TRY_ASSIGN(const std::string begin, read_at(file, 0, first.size()), "looking at it");
  if (begin != first) return off_t{0};
  const off_t tail_bytes = std::min<off_t>(status.st_size, 1 << 16);
  const off_t tail_at = status.st_size - tail_bytes;
  MEMSPAN_TRY_ASSIGN(const std::string tail,
                     read_at(file, tail_at, static_cast<std::size_t>(tail_bytes)),
                     "looking at its end");
  if (tail.ends_with(kEnd)) return status.st_size - static_cast<off_t>(kEnd.size());
  const std::size_t whole = tail.rfind("},\n");
  return whole == std::string::npos ? off_t{0} : tail_at + static_cast<off_t>(whole) + 1;
}

}  // namespace

int trace_process_of(const TraceOwner& owner) {
  return owner.kind == MemberKind::kEndpoint ? getpid() : owner.rank;
}

std::string trace_path(std::string_view pattern, const TraceOwner& owner) {
  std::string path;
  bool has_process = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char next = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (pattern[i] != '%' || (next != 'r' && next != 'p' && next != '%')) {
      path += pattern[i];
      continue;
    }
    ++i;
    has_process = has_process || next == 'p';
    path += next == 'r' ? std::to_string(owner.rank) : next == 'p' ? std::to_string(getpid()) : "%";
  }
  if (owner.kind == MemberKind::kEndpoint && !has_process) path += fmt::format(".{}", getpid());
  return path;
}

Status append_to_trace(std::string_view pattern, const TraceOwner& owner,
                       const std::vector<std::string>& events, std::uint64_t lost) {
  const std::string path = trace_path(pattern, owner);
  const auto opened = open_output_file(path, O_RDWR, 0666);
  if (!opened.is_ok()) return opened.status();
  const Fd& file = opened.value();
  MEMSPAN_PASS(lock(file, path));
  MEMSPAN_TRY_ASSIGN(off_t end, end_of_events(file, owner), path);
  std::string text = end == 0 ? first_line(owner) : ",\n";
  text += metadata(owner, "process_name", R"("name":)" + json_string(name_of_process(owner)));
  text += ",\n" + metadata(owner, "process_sort_index",
                           fmt::format(R"("sort_index":{})", trace_process_of(owner)));
  if (lost > 0)
    text +=
        ",\n" + metadata(owner, "process_labels",
                         fmt::format(R"("labels":"{} older events lost","lost":{})", lost, lost));
  for (const std::string& event : events) {
    text += ",\n";
    text += event;
  }
  text += kEnd;
  // Cut off first, so that a process killed while writing leaves no stale end.
  if (ftruncate(file.get(), end) != 0) return Status::from_errno("cutting off " + path);
  MEMSPAN_TRY(write_at(file, end, text), path);
  return Status::ok();
}

}  // namespace memspan
