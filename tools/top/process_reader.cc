// SPDX-License-Identifier: Apache-2.0
#include "top/process_reader.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>

namespace memspan {

// A memfd of another process, mapped to read.
struct CountersWindow {
  struct Unmap {
    std::size_t bytes;
    void operator()(void* place) const { munmap(place, bytes); }
  };
  std::unique_ptr<void, Unmap> mapped;
  std::uint64_t number;  // of the file
};

namespace {

constexpr std::string_view kCountersLink = "/memfd:memspan-counters (deleted)";
constexpr std::string_view kNodeLink = "/memfd:memspan-node (deleted)";

// The names of a folder of /proc that are numbers.
std::vector<std::int32_t> numbers_in(const std::string& folder) {
  std::vector<std::int32_t> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(opendir(folder.c_str()), closedir);
  if (open == nullptr) return numbers;
  while (const dirent* entry = readdir(open.get())) {
    const std::string_view name = entry->d_name;
    std::int32_t number = 0;
    auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error == std::errc() && end == name.data() + name.size()) numbers.push_back(number);
  }
  return numbers;
}

std::string link_of(const std::string& path) {
  char target[128];
  const ssize_t length = readlink(path.c_str(), target, sizeof target);
  return length < 0 ? std::string() : std::string(target, static_cast<std::size_t>(length));
}

std::string first_bytes_of(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char text[512];
  const ssize_t length = file.is_valid() ? read(file.get(), text, sizeof text) : -1;
  return length < 0 ? std::string() : std::string(text, static_cast<std::size_t>(length));
}

std::optional<CountersWindow> open_window(const std::string& path, std::size_t least_bytes) {
  // The owner may have replaced the file by a FIFO: O_NONBLOCK does not wait for it.
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file.is_valid() || fstat(file.get(), &status) != 0) return std::nullopt;
  // Memory that its owner could shrink would end us when we read it.
  const int seals = fcntl(file.get(), F_GET_SEALS);
  const auto bytes = static_cast<std::size_t>(status.st_size);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || bytes < least_bytes) return std::nullopt;
  void* const mapped = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.get(), 0);
  if (mapped == MAP_FAILED) return std::nullopt;
  return CountersWindow{{mapped, {bytes}}, status.st_ino};
}

// The path of the process's descriptor with that link; empty if it has none.
std::string descriptor_of(std::int32_t process, std::string_view link) {
  const std::string folder = fmt::format("/proc/{}/fd", process);
  for (const std::int32_t number : numbers_in(folder)) {
    std::string path = fmt::format("{}/{}", folder, number);
    if (link_of(path) == link) return path;
  }
  return {};
}

const CountersRegion& region_of(const CountersWindow& window) {
  return *static_cast<const CountersRegion*>(window.mapped.get());
}

std::optional<CountersWindow> open_counters(const std::string& path) {
  auto window = open_window(path, sizeof(CountersRegion));
  if (!window) return std::nullopt;
  const CountersHeader& header = region_of(*window).header;
  if (header.magic != kCountersMagic || header.version != kCountersVersion) return std::nullopt;
  return window;
}

// The letter behind the command, which is in parentheses and may contain any character.
char state_in(const std::string& stat) {
  const std::size_t end = stat.rfind(')');
  return end == std::string::npos || end + 2 >= stat.size() ? '?' : stat[end + 2];
}

}  // namespace

std::optional<std::uint32_t> stack_requests_of(std::int32_t process) {
  const std::string path = descriptor_of(process, kCountersLink);
  const auto window = path.empty() ? std::nullopt : open_counters(path);
  if (!window) return std::nullopt;
  return region_of(*window).header.stack_requests.load(std::memory_order_relaxed);
}

struct ProcessReader::Mapped {
  CountersWindow counters;
  std::string path;  // where another file may be
  std::string node_path;
};

ProcessReader::ProcessReader() = default;
ProcessReader::~ProcessReader() = default;

void ProcessReader::find(std::int32_t process) {
  std::string counters = descriptor_of(process, kCountersLink);
  if (counters.empty()) return;
  auto window = open_counters(counters);
  if (!window) return;
  found_[process] = std::make_unique<Mapped>(Mapped{std::move(*window), std::move(counters), {}});
}

std::vector<ProcessSeen> ProcessReader::look() {
  std::map<std::int32_t, std::unique_ptr<Mapped>> before;
  before.swap(found_);
  std::vector<std::int32_t> processes = numbers_in("/proc");
  std::sort(processes.begin(), processes.end());
  std::vector<ProcessSeen> seen;
  std::map<std::uint64_t, std::shared_ptr<const SegmentSeen>> nodes;
  const std::uint64_t now = nanoseconds_of(Clock::now());
  for (const std::int32_t process : processes) {
    const auto known = before.find(process);
    struct stat status {};
    if (known != before.end() && stat(known->second->path.c_str(), &status) == 0 &&
        status.st_ino == known->second->counters.number)
      found_[process] = std::move(known->second);
    else
      find(process);
    const auto mapped = found_.find(process);
    if (mapped == found_.end()) continue;
    ProcessSeen one;
    one.counters = read_counters(region_of(mapped->second->counters), now);
    // A child that fork() made has its parent's descriptor until it runs another program.
    if (one.counters.members.empty()) continue;
    one.counters.process = process;
    const std::string command = first_bytes_of(fmt::format("/proc/{}/comm", process));
    one.command = printable(command.c_str(), command.empty() ? 0 : command.size() - 1);
    one.state = state_in(first_bytes_of(fmt::format("/proc/{}/stat", process)));
    // It may have joined a job, or left it, since the last look.
    std::string& node_path = mapped->second->node_path;
    const bool is_in_job =
        std::any_of(one.counters.members.begin(), one.counters.members.end(),
                    [](const MemberSeen& member) { return member.kind == MemberKind::kJob; });
    if (is_in_job && (node_path.empty() || link_of(node_path) != kNodeLink))
      node_path = descriptor_of(process, kNodeLink);
    if (is_in_job && !node_path.empty()) {
      const auto window = open_window(node_path, 1);
      if (window) {
        auto& node = nodes[window->number];
        if (node == nullptr)
          node = std::make_shared<SegmentSeen>(
              NodeSegment::look(window->mapped.get(), window->mapped.get_deleter().bytes));
        one.node = node;
      }
    }
    seen.push_back(std::move(one));
  }
  return seen;
}

}  // namespace memspan
