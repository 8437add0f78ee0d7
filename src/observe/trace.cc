// SPDX-License-Identifier: Apache-2.0
#include "observe/trace.h"

#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <new>
#include <thread>

#include "core/environment.h"
#include "core/lifetime.h"
#include "core/log.h"
#include "core/mutex.h"
#include "core/private_file.h"

namespace memspan::inline observe {
namespace {

constexpr std::string_view kEnd = "\n]}\n";
constexpr Duration kPatience = std::chrono::seconds(10);

// The number of the process in the timeline: its rank, or an endpoint's process number.
int trace_process_of(const TraceOwner& owner) {
  return owner.kind == MemberKind::kEndpoint ? getpid() : owner.rank;
}

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
  const std::string name = owner.kind == MemberKind::kJob    ? fmt::format("PE {}", owner.rank)
                           : owner.kind == MemberKind::kPool ? fmt::format("rank {}", owner.rank)
                                                             : owner.name;
  return fmt::format("{} (process {} on {})", name, getpid(), host_name());
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

constexpr std::size_t kMostEvents = 65536;  // of a thread, 40 bytes each
constexpr std::size_t kMostRings = 256;

// The last events of a thread. Only write_trace() on another thread makes it wait.
struct Ring {
  explicit Ring(std::int64_t of_thread) : thread(of_thread) {}
  const std::int64_t thread;
  bool has_ended = false;                                    // the thread; State::mutex protects it
  Mutex mutex;                                               // taken after State::mutex
  std::vector<TraceEvent> events MEMSPAN_GUARDED_BY(mutex);  // event i is at i modulo kMostEvents
  std::uint64_t count MEMSPAN_GUARDED_BY(mutex) = 0;         // ever
  std::uint64_t written MEMSPAN_GUARDED_BY(mutex) = 0;       // of them
};

struct State {
  Mutex mutex;
  std::string file MEMSPAN_GUARDED_BY(mutex);
  std::vector<std::unique_ptr<Ring>> rings MEMSPAN_GUARDED_BY(mutex);  // the oldest first
  TraceOwner owner MEMSPAN_GUARDED_BY(mutex);
  bool has_wall_clock MEMSPAN_GUARDED_BY(mutex) = false;
  std::atomic<std::uint64_t> unkept{0};  // events of threads without a ring
};

// Never destroyed: threads may end after the process's own objects.
State& state() {
  static State* const only = new State;
  return *only;
}

constinit thread_local Ring* own_ring = nullptr;
constinit thread_local bool has_no_ring = false;  // and gets none

void end_ring() {
  has_no_ring = true;  // what destructors do after this is not kept
  if (own_ring == nullptr) return;
  MutexLock lock(state().mutex);
  std::exchange(own_ring, nullptr)->has_ended = true;
}

// If there are too many, drops the oldest ring of an ended thread with its unwritten events.
Ring* make_ring() {
  at_thread_end(end_ring);
  State& its = state();
  MutexLock lock(its.mutex);
  if (its.rings.size() >= kMostRings) {
    const auto oldest = std::ranges::find_if(its.rings, &Ring::has_ended);
    has_no_ring = oldest == its.rings.end();
    if (has_no_ring) return nullptr;
    {
      MutexLock its_lock((*oldest)->mutex);
      its.unkept.fetch_add((*oldest)->count - (*oldest)->written, std::memory_order_relaxed);
    }
    its.rings.erase(oldest);
  }
  its.rings.push_back(std::make_unique<Ring>(syscall(SYS_gettid)));
  return own_ring = its.rings.back().get();
}

// Nanoseconds as JSON has them: in microseconds.
std::string in_microseconds(std::uint64_t nanoseconds) {
  return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
}

std::string line_of(const TraceEvent& event, int process, std::int64_t thread, std::int64_t shift) {
  std::string arguments;
  if (event.kind) arguments = fmt::format(R"("bytes":{})", event.bytes);
  if (event.peer != kNobodyNamed)
    arguments += fmt::format(R"({}:{})", event.kind ? R"(,"peer")" : R"("for")", event.peer);
  return fmt::format(
      R"({{"ph":"X","cat":"{}","name":"{}{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
      event.kind ? name_of(*event.kind) : "wait", event.kind ? "" : "wait in ", event.name, process,
      thread, in_microseconds(event.begin + static_cast<std::uint64_t>(shift)),
      in_microseconds(event.end - event.begin), arguments);
}

// Appends the events of a ring that were not written yet; returns how many are lost.
std::uint64_t take(Ring& ring, int process, std::int64_t shift, std::vector<std::string>& lines) {
  MutexLock lock(ring.mutex);
  const std::uint64_t unwritten = ring.count - ring.written;
  const std::uint64_t lost = unwritten > kMostEvents ? unwritten - kMostEvents : 0;
  for (ring.written += lost; ring.written < ring.count; ++ring.written)
    lines.push_back(line_of(ring.events[ring.written % kMostEvents], process, ring.thread, shift));
  return lost;
}

// The shift to times that a double holds to the nanosecond. They count from the start of the
// previous million seconds, the same for processes that write at about the same time.
std::int64_t wall_clock_shift() {
  constexpr std::int64_t kPeriod = 1'000'000'000'000'000;
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  const std::int64_t wall =
      std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch).count();
  return wall % kPeriod + kPeriod - static_cast<std::int64_t>(nanoseconds_of(Clock::now()));
}

// Whether the file can be written, as things are now; nothing is made.
Status check_place(const std::string& path) {
  struct stat there {};
  if (lstat(path.c_str(), &there) == 0) return open_output_file(path, O_RDWR, 0666).status();
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (access((folder + "/.").c_str(), W_OK | X_OK) == 0) return Status::ok();
  return Status::from_errno(fmt::format("the folder {}", folder));
}

// One warning for a whole job or pool, at its start: the end may be hours away.
void warn_of_place(const std::string& pattern, const TraceOwner& owner) {
  if (pattern.empty() || owner.rank != 0) return;
  const std::string path = trace_path(pattern, owner);
  if (const Status place = check_place(path); !place.is_ok())
    log_line(LogLevel::kWarn,
             fmt::format("MEMSPAN_TRACE: {} cannot be written, so the trace will be lost: {}", path,
                         place.message()));
}

}  // namespace

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
  MEMSPAN_PASS_ASSIGN(const Fd file, open_output_file(path, O_RDWR | O_APPEND, 0666));
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
  const int error = write_all(file.get(), text);
  return error == 0 ? Status::ok() : Status::from_errno("writing the trace", error).annotate(path);
}

bool start_trace(TraceOwner owner) {
  State& its = state();
  MutexLock lock(its.mutex);
  its.file = environment_or("MEMSPAN_TRACE", "");
  its.owner = std::move(owner);
  its.has_wall_clock = its.owner.kind == MemberKind::kPool;  // whose members may be on any host
  warn_of_place(its.file, its.owner);
  return !its.file.empty();
}

void use_wall_clock_in_trace() {
  State& its = state();
  MutexLock lock(its.mutex);
  its.has_wall_clock = true;
}

void add_to_trace(const TraceEvent& event) {
  Ring* ring = own_ring;
  if (ring == nullptr && !has_no_ring) ring = make_ring();
  if (ring == nullptr) {
    state().unkept.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  MutexLock lock(ring->mutex);
  if (ring->events.size() < kMostEvents)
    ring->events.push_back(event);
  else
    ring->events[ring->count % kMostEvents] = event;
  ++ring->count;
}

void write_trace() {
  if (!recording.traces.load(std::memory_order_relaxed)) return;
  State& its = state();
  MutexLock lock(its.mutex);
  if (its.file.empty() || its.owner.kind == MemberKind::kNone) return;
  const int process = trace_process_of(its.owner);
  const std::int64_t shift = its.has_wall_clock ? wall_clock_shift() : 0;
  std::vector<std::string> lines;
  std::uint64_t lost = its.unkept.exchange(0);
  for (const std::unique_ptr<Ring>& ring : its.rings) lost += take(*ring, process, shift, lines);
  if (lines.empty()) return;
  const Status written = append_to_trace(its.file, its.owner, lines, lost);
  if (!written.is_ok())
    log_line(LogLevel::kWarn, fmt::format("the trace is lost: {}", written.message()));
}

void forget_trace_in_child() {
  own_ring = nullptr;
  has_no_ring = false;
  new (&state()) State;  // the parent's threads may hold it; its rings are not ours to free
}

}  // namespace memspan::inline observe
