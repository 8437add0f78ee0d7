// SPDX-License-Identifier: Apache-2.0
#include "store/group.h"

#include <fmt/format.h>

#include "core/bytes.h"
#include "core/check.h"
#include "store/wire.h"

namespace memspan {
namespace {

// An operation that timed out asks once more who was there; a store that lives answers in far
// less than this.
constexpr Duration kDiagnosisBound = std::chrono::seconds(2);
// In front of every member's bytes: its rank and their length.
constexpr std::size_t kRecordHeader = 8;

std::string record(int rank, std::string_view bytes) {
  ByteWriter writer;
  writer.u32(static_cast<std::uint32_t>(rank));
  writer.text(bytes);
  return writer.take();
}

}  // namespace

// The keys of operation k:
//   NAME/k/parts  a record of every member that arrived, in the order of arrival
//   NAME/k/count  how many records there are
//   NAME/k/done   set by the last one
Group::Group(StoreClient& client, std::string name, int rank, int size)
    : client_(client), name_(std::move(name)), rank_(rank), size_(size) {
  MEMSPAN_CHECK(size > 0 && rank >= 0 && rank < size);
}

std::string Group::key(std::uint64_t operation, std::string_view what) const {
  return fmt::format("{}/{}/{}", name_, operation, what);
}

Status Group::barrier(Deadline deadline) {
  const std::uint64_t operation = operation_++;
  Status status = arrive(operation, {}, deadline);
  if (!status.is_ok()) return status.annotate(fmt::format("barrier {} of {}", operation, name_));
  forget_before(operation, deadline);
  return status;
}

Result<std::vector<std::string>> Group::allgather(std::string_view mine, Deadline deadline) {
  const std::uint64_t operation = operation_++;
  const std::string doing = fmt::format("allgather {} of {}", operation, name_);
  const std::size_t most = kMaxValueBytes / static_cast<std::size_t>(size_) - kRecordHeader;
  if (mine.size() > most)
    return Status(Code::kInvalidArgument, fmt::format("{}: each of {} members gives at most {} "
                                                      "bytes, not {}",
                                                      doing, size_, most, mine.size()));
  MEMSPAN_TRY(arrive(operation, mine, deadline), doing);
  MEMSPAN_TRY_ASSIGN(Parts parts, read_parts(operation, deadline), doing);
  std::vector<std::string> values;
  for (auto& part : parts) {
    if (!part)
      return Status(Code::kInternal, doing + ": it is over and a member's bytes are missing");
    values.push_back(std::move(*part));
  }
  forget_before(operation, deadline);
  return values;
}

Status Group::arrive(std::uint64_t operation, std::string_view mine, Deadline deadline) {
  auto length = client_.append(key(operation, "parts"), record(rank_, mine), deadline);
  if (!length.is_ok()) return length.status();
  auto count = client_.add(key(operation, "count"), 1, deadline);
  if (!count.is_ok()) return count.status();
  if (*count == size_) return client_.set(key(operation, "done"), "", deadline);
  Status status = client_.wait({key(operation, "done")}, deadline);
  if (status.code() == Code::kTimeout) return explain_timeout(operation, status);
  return status;
}

Status Group::explain_timeout(std::uint64_t operation, const Status& timeout) {
  auto parts = read_parts(operation, Deadline::after(kDiagnosisBound));
  if (parts.code() == Code::kInvalidArgument) return parts.status();  // why it could not end
  if (!parts.is_ok()) return timeout;
  std::string missing;
  for (int rank = 0; rank < size_; ++rank)
    if (!(*parts)[static_cast<std::size_t>(rank)])
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
  if (missing.empty()) return Status::ok();  // the last one came in this very moment
  return timeout.annotate(fmt::format("missing of {} members: rank {}", size_, missing));
}

Result<Group::Parts> Group::read_parts(std::uint64_t operation, Deadline deadline) {
  MEMSPAN_TRY_ASSIGN(std::string bytes, client_.get_now(key(operation, "parts"), deadline),
                     "reading what the members gave");
  Parts parts(static_cast<std::size_t>(size_));
  for (ByteReader reader(bytes); !reader.is_finished();) {
    const std::uint32_t rank = reader.u32();
    const std::string_view part = reader.text();
    if (!reader.is_ok() || rank >= parts.size())
      return Status(Code::kInvalidArgument, "another group uses the same name");
    if (parts[rank])
      return Status(Code::kInvalidArgument, fmt::format("two members have the rank {}", rank));
    parts[rank] = std::string(part);
  }
  return parts;
}

// Whoever arrived at an operation is done with all before it, so when one is over nobody reads
// the keys of earlier ones. One member clears them away; if it cannot, they only take room.
void Group::forget_before(std::uint64_t operation, Deadline deadline) {
  if (rank_ != 0) return;
  for (; kept_from_ < operation; ++kept_from_)
    for (std::string_view what : {"parts", "count", "done"})
      if (!client_.remove(key(kept_from_, what), deadline).is_ok()) return;
}

}  // namespace memspan
