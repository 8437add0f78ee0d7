// SPDX-License-Identifier: Apache-2.0
#include "device/process_maps.h"

#include <fmt/format.h>
#include <sys/sysmacros.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <fstream>

namespace memspan::inline device {
namespace {

// Parses the first line of a mapping; nullopt for another kind of line.
std::optional<ProcessMapping> read_mapping(const std::string& line) {
  ProcessMapping made;
  std::array<char, 5> access{};
  unsigned device_major = 0, device_minor = 0;
  std::uint64_t inode = 0;
  int name_at = 0;
  if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n",
                  &made.begin, &made.end, access.data(), &made.offset, &device_major, &device_minor,
                  &inode, &name_at) != 7)
    return std::nullopt;
  made.access = access.data();
  made.device = makedev(device_major, device_minor);
  made.inode = inode;
  if (static_cast<std::size_t>(name_at) < line.size())
    made.name = line.substr(static_cast<std::size_t>(name_at));
  if (made.access.size() != 4) return std::nullopt;
  return made;
}

bool overlaps(const ProcessMapping& mapping, std::uint64_t begin, std::uint64_t end) {
  return mapping.begin < end && begin < mapping.end;
}

Result<std::ifstream> open_of_process(const char* path) {
  std::ifstream file(path);
  if (file) return file;
  return Status(Code::kSystem,
                fmt::format("looking at what is mapped: reading {}, which cannot be opened", path));
}

std::uint64_t locked_kib() {
  std::ifstream file("/proc/self/status");
  std::uint64_t kib = 0;
  for (std::string line; std::getline(file, line);)
    if (std::sscanf(line.c_str(), "VmLck: %" SCNu64, &kib) == 1) return kib;
  return 0;
}

}  // namespace

std::string ProcessMapping::to_string() const {
  return fmt::format("[{:#x}, {:#x}) {}{}{}", begin, end, access, name.empty() ? "" : " ", name);
}

Status look_at_mappings(std::uint64_t begin, std::uint64_t end,
                        const std::function<bool(const ProcessMapping&)>& look) {
  MEMSPAN_PASS_ASSIGN(std::ifstream file, open_of_process("/proc/self/maps"));
  for (std::string line; std::getline(file, line);) {
    const auto mapping = read_mapping(line);
    if (!mapping || !overlaps(*mapping, begin, end)) continue;
    if (!look(*mapping)) break;
  }
  return Status::ok();
}

Result<bool> has_locked_memory(std::uint64_t begin, std::uint64_t end) {
  if (locked_kib() == 0) return false;
  MEMSPAN_PASS_ASSIGN(std::ifstream file, open_of_process("/proc/self/smaps"));
  bool is_in = false;
  for (std::string line; std::getline(file, line);) {
    if (const auto mapping = read_mapping(line)) {
      if (mapping->begin >= end) break;
      is_in = overlaps(*mapping, begin, end);
    } else if (is_in && line.starts_with("VmFlags:") && line.find(" lo") != std::string::npos) {
      return true;
    }
  }
  return false;
}

}  // namespace memspan::inline device
