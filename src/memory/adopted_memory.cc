// SPDX-License-Identifier: Apache-2.0
#include "memory/adopted_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <vector>

#include "device/in_place.h"
#include "device/process_maps.h"
#include "memory/budget.h"

namespace memspan::inline memory {
namespace {

constexpr const char* kLabel = "memspan-adopted";

std::byte* pointer(std::uint64_t address) {
  return reinterpret_cast<std::byte*>(address);  // NOLINT: an address
}

// A value; whole pages.
struct Span {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool has(const void* place) const {
    const auto address = reinterpret_cast<std::uint64_t>(place);
    return begin <= address && address < end;
  }
};

Status cannot_adopt(std::string why) {
  return {Code::kInvalidArgument, "this memory cannot be adopted: " + std::move(why)};
}

const char* why_not(const ProcessMapping& mapping) {
  if (mapping.name.find(kLabel) != std::string::npos)
    return "is adopted already, by itself or with the memory beside it";
  if (mapping.is_shared()) return "is shared memory";
  if (mapping.inode != 0) return "is of a file or of huge pages that were set aside";
  if (mapping.name.starts_with("[stack")) return "is a stack";
  if (!mapping.access.starts_with("rw-")) return "is not just readable and writable";
  return nullptr;
}

Status check_mappings(const Span& span) {
  std::uint64_t seen = span.begin;
  Status refused;
  const auto check = [&](const ProcessMapping& mapping) {
    if (mapping.begin > seen) return false;
    if (const char* const why = why_not(mapping))
      refused = cannot_adopt(fmt::format("{} {}", mapping.to_string(), why));
    seen = mapping.end;
    return refused.is_ok();
  };
  MEMSPAN_PASS(look_at_mappings(span.begin, span.end, check));
  MEMSPAN_PASS(refused);
  if (seen < span.end)
    return cannot_adopt(fmt::format("nothing is mapped at {:#x} of this process", seen));
  MEMSPAN_PASS_ASSIGN(auto is_locked, has_locked_memory(span.begin, span.end));
  if (is_locked) return cannot_adopt("some of it is locked (mlock), which the new pages were not");
  return Status::ok();
}

// While writers are held off, this thread must not write to the range itself.
Status check_own_thread(const Span& span) {
  const void* const on_stack = __builtin_frame_address(0);
  if (span.has(on_stack)) return cannot_adopt("the stack of this thread is in it");
  if (span.has(&errno)) return cannot_adopt("the thread-local variables of this thread are in it");
  return Status::ok();
}

// Calls `step` for pieces of at most `bytes`, which end at multiples of `bytes`.
template <typename Step>
Status in_pieces(const Span& span, std::size_t bytes, Step step) {
  for (std::uint64_t at = span.begin; at < span.end;) {
    const std::uint64_t stop = std::min(span.end, (at / bytes + 1) * bytes);
    MEMSPAN_PASS(step(Span{at, stop}));
    at = stop;
  }
  return Status::ok();
}

// A growing realloc() would move the mapping and get a tail beyond the end of the memory, where
// accesses end the process. The kernel does not grow several mappings by a move; realloc() then
// copies. This hint has no effect except that it splits the mapping in two.
void keep_from_growing(const Span& span) {
  if (span.end - span.begin > page_size())
    madvise(pointer(span.end - page_size()), page_size(), MADV_RANDOM);
}

// The parts of `span` that still map `pages`, in which the span begins at `lead`.
Result<std::vector<Span>> find_in_place(const Pages& pages, const Span& span, std::size_t lead) {
  struct stat ours {};
  if (fstat(pages.descriptor(), &ours) != 0) return Status::from_errno("fstat of adopted memory");
  std::vector<Span> found;
  const auto look = [&](const ProcessMapping& mapping) {
    const bool is_ours = mapping.inode == ours.st_ino && mapping.device == ours.st_dev &&
                         mapping.is_shared() &&
                         mapping.offset + (span.begin - mapping.begin) == lead;  // modulo 2^64
    if (is_ours)
      found.push_back({std::max(span.begin, mapping.begin), std::min(span.end, mapping.end)});
    return true;
  };
  MEMSPAN_PASS(look_at_mappings(span.begin, span.end, look));
  return found;
}

}  // namespace

Result<AdoptedMemory> AdoptedMemory::adopt(std::byte* base, std::size_t bytes) {
  const auto first = reinterpret_cast<std::uint64_t>(base);
  if (bytes == 0) return Status(Code::kInvalidArgument, "invalid capacity, which is 0");
  if (bytes > UINT64_MAX - page_size() - first)
    return cannot_adopt(
        fmt::format("{:#x} and {} bytes are more than an address can be", first, bytes));
  const Span all{first / page_size() * page_size(), align_up(first + bytes, page_size())};
  MEMSPAN_PASS(check_mappings(all));
  MEMSPAN_PASS(check_own_thread(all));
  MEMSPAN_TRY_ASSIGN(const WriteHold hold, WriteHold::make(), "adopting memory");
  const std::size_t lead = lead_of(all.begin);
  MEMSPAN_TRY_ASSIGN(Pages pages, Pages::create(lead + (all.end - all.begin), kLabel),
                     "adopting memory");
  AdoptedMemory made(all.begin, all.begin, std::move(pages));  // gives back what is done
  const auto place_in_pages = [&](const Span& span) { return lead + (span.begin - all.begin); };
  const auto share = [&](const Span& piece) {
    Status status = share_in_place(hold, pointer(piece.begin), piece.end - piece.begin, made.pages_,
                                   place_in_pages(piece));
    if (status.is_ok()) made.end_ = piece.end;
    return status;
  };
  const auto take_and_share = [&](const Span& part) {
    MEMSPAN_PASS(commit_within_budget(
        {.pages = made.pages_, .offset = place_in_pages(part), .bytes = part.end - part.begin},
        "the next part of it"));
    return in_pieces(part, kPieceInPlace, share);
  };
  MEMSPAN_TRY(in_pieces(all, Pages::kCommitStep, take_and_share), "adopting memory");
  madvise(pointer(all.begin), all.end - all.begin, MADV_HUGEPAGE);
  keep_from_growing(all);
  return made;
}

AdoptedMemory::AdoptedMemory(AdoptedMemory&& other) noexcept
    : begin_(other.begin_),
      end_(other.end_),
      pages_(std::move(other.pages_)),
      is_given_back_(std::exchange(other.is_given_back_, true)) {}

AdoptedMemory::~AdoptedMemory() {
  static_cast<void>(give_back());
}

Result<bool> AdoptedMemory::is_in_place() const {
  MEMSPAN_PASS_ASSIGN(auto found, find_in_place(pages_, {begin_, end_}, lead_of(begin_)));
  std::uint64_t bytes = 0;
  for (const Span& span : found) bytes += span.end - span.begin;
  return bytes == end_ - begin_;
}

Status AdoptedMemory::give_back() {
  if (std::exchange(is_given_back_, true) || begin_ == end_) return Status::ok();
  const std::size_t lead = lead_of(begin_);
  MEMSPAN_TRY_ASSIGN(const std::vector<Span> found, find_in_place(pages_, {begin_, end_}, lead),
                     "giving adopted memory private pages again");
  MEMSPAN_TRY_ASSIGN(const WriteHold hold, WriteHold::make(),
                     "giving adopted memory private pages again");
  for (const Span& span : found) {
    const std::size_t bytes = span.end - span.begin;
    // One mapping, so that its pieces are one mapping again in their final place.
    void* const spare = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (spare == MAP_FAILED) return Status::from_errno("giving adopted memory private pages again");
    std::byte* next = static_cast<std::byte*>(spare);  // everything before it has moved away
    const auto undo = [&](const Span& piece) {
      const std::size_t piece_bytes = piece.end - piece.begin;
      const std::size_t at = lead + (piece.begin - begin_);
      MEMSPAN_PASS(unshare_in_place(hold, pointer(piece.begin), piece_bytes, pages_, at, next));
      next += piece_bytes;
      // Otherwise another process that has it mapped would keep the memory.
      fallocate(pages_.descriptor(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                static_cast<off_t>(at), static_cast<off_t>(piece_bytes));
      return Status::ok();
    };
    const Status status = in_pieces(span, kPieceInPlace, undo);
    if (status.is_ok()) continue;
    munmap(next, bytes - static_cast<std::size_t>(next - static_cast<std::byte*>(spare)));
    return status.annotate("giving adopted memory private pages again");
  }
  return Status::ok();
}

}  // namespace memspan::inline memory
