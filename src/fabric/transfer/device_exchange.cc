// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/device_exchange.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "core/bytes.h"
#include "core/pages.h"
#include "net/unix_socket.h"

namespace memspan::transfer {
namespace {

constexpr std::size_t kMostInPart = kMostUnixDescriptors - 1;
// Room for the sizes of more allocations than a process may have descriptors.
constexpr std::size_t kMostText = std::size_t{16} << 20;

std::string part_name(const std::string& name, std::size_t part) {
  return part == 0 ? name : fmt::format("{}/{}", name, part);
}

// How many descriptors follow, and the text.
Result<Fd> memfd_of(const SharedPointer& shared) {
  ByteWriter writer;
  writer.u32(static_cast<std::uint32_t>(shared.descriptors.size()));
  writer.text(shared.text);
  const std::string all = writer.take();
  if (all.size() > kMostText)
    return Status(
        Code::kNotSupported,
        fmt::format("device memory in {} allocations cannot be shared, which are too many",
                    shared.descriptors.size()));
  MEMSPAN_TRY_ASSIGN(Pages pages, Pages::create(all.size(), "memspan-device-memory"),
                     "sharing memory of a device");
  if (::pwrite(pages.descriptor(), all.data(), all.size(), 0) != static_cast<ssize_t>(all.size()))
    return Status::from_errno("sharing memory of a device");
  return pages.duplicate();
}

// The text, and how many descriptors belong to it.
Result<std::pair<std::string, std::size_t>> read_memfd(const Fd& descriptor) {
  const Status bad(Code::kInternal, "something else came than words for memory of a device");
  struct stat about = {};
  if (::fstat(descriptor.get(), &about) != 0 || about.st_size <= 0) return bad;
  std::string all(std::min(static_cast<std::size_t>(about.st_size), kMostText), 0);
  if (::pread(descriptor.get(), all.data(), all.size(), 0) != static_cast<ssize_t>(all.size()))
    return bad;
  ByteReader reader(all);
  const std::size_t count = reader.u32();
  std::string text(reader.text());
  if (!reader.is_ok()) return bad;
  return std::pair(std::move(text), count);
}

}  // namespace

Result<PublishedPointer> PublishedPointer::publish(DescriptorBroker& broker, std::string name,
                                                   SharedPointer shared) {
  PublishedPointer made(broker, std::move(name));
  std::vector<Fd> part;
  MEMSPAN_TRY_ASSIGN(part.emplace_back(), memfd_of(shared), "registering device memory");
  auto next = shared.descriptors.begin();
  // The first part is last, so that a peer that finds it finds them all.
  std::vector<std::vector<Fd>> parts;
  do {
    const auto room = static_cast<std::ptrdiff_t>(kMostInPart - part.size());
    const auto end = next + std::min(room, shared.descriptors.end() - next);
    std::move(next, end, std::back_inserter(part));
    next = end;
    parts.push_back(std::exchange(part, {}));
  } while (next != shared.descriptors.end());
  made.parts_ = parts.size();
  for (std::size_t i = parts.size(); i-- > 0;)
    MEMSPAN_PASS(broker.publish(part_name(made.name_, i), std::move(parts[i])));
  return made;
}

PublishedPointer::PublishedPointer(PublishedPointer&& other) noexcept
    : broker_(other.broker_),
      name_(std::move(other.name_)),
      parts_(std::exchange(other.parts_, 0)) {}

PublishedPointer::~PublishedPointer() {
  for (std::size_t i = 0; i < parts_; ++i) broker_.retract(part_name(name_, i));
}

Result<SharedPointer> fetch_pointer(const std::string& name, const FetchPublished& fetch) {
  SharedPointer shared;
  std::size_t count = 0;
  for (std::size_t part = 0; part == 0 || shared.descriptors.size() < count; ++part) {
    MEMSPAN_PASS_ASSIGN(auto answer, fetch(part_name(name, part)));
    auto came = answer.descriptors.begin();
    if (came == answer.descriptors.end())
      return Status(Code::kInternal, "no memory of a device came");
    if (part == 0) {
      MEMSPAN_PASS_ASSIGN(auto read, read_memfd(*came++));
      std::tie(shared.text, count) = std::move(read);
    }
    std::move(came, answer.descriptors.end(), std::back_inserter(shared.descriptors));
  }
  return shared;
}

}  // namespace memspan::transfer
