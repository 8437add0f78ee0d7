// SPDX-License-Identifier: Apache-2.0
// Requests are prepared.
#include <fmt/format.h>
#include <memspan/transfer.h>

#include <string>
#include <utility>
#include <vector>

#include "capi/smem/endpoints.h"
#include "capi/smem/number_of.h"
#include "capi/smem/requests.h"

namespace memspan::capi {
namespace {

using transfer::Direction;

struct Given {
  const char* call;
  smem_trans_t endpoint;
  unsigned direction;
  const char* peer;
  memspan_transfer_t* request;
};

// More pieces than memory could list.
constexpr std::uint64_t kMostPieces = std::uint64_t{1} << 32;

Status check_count(std::uint64_t count) {
  if (count != 0 && count <= kMostPieces) return Status::ok();
  return invalid(
      fmt::format("invalid count, which is {}: allowed are 1 to {}", count, kMostPieces));
}

Status check(const Given& given) {
  if (given.request == nullptr) return invalid("invalid param, request is NULL");
  if (given.peer == nullptr || given.peer[0] == '\0')
    return invalid("invalid peer, which is null/empty");
  if (given.direction == MEMSPAN_TRANSFER_READ || given.direction == MEMSPAN_TRANSFER_WRITE)
    return Status::ok();
  return invalid(fmt::format("invalid direction, which is {}: allowed are {} and {}",
                             given.direction, static_cast<int>(MEMSPAN_TRANSFER_READ),
                             static_cast<int>(MEMSPAN_TRANSFER_WRITE)));
}

template <typename T>
using Made = Result<std::unique_ptr<T>>;

template <typename T>
Made<const transfer::Pieces> own(Result<T> pieces) {
  if (!pieces.is_ok()) return pieces.status();
  return std::unique_ptr<const transfer::Pieces>(std::make_unique<T>(std::move(pieces).value()));
}

// `make()` gives the pieces.
template <typename Make>
std::int32_t prepare(const Given& given, Make make) {
  auto endpoint = endpoints().use(given.endpoint);
  if (!endpoint) return bad_endpoint(given.call, given.endpoint);
  if (Status status = check(given); !status.is_ok()) return smem_result(given.call, status);
  Made<const transfer::Pieces> pieces = make();
  if (!pieces.is_ok()) return smem_result(given.call, pieces.status());
  auto request = endpoint->prepare(static_cast<Direction>(given.direction), given.peer,
                                   std::move(pieces).value());
  void* const handle = requests().add(
      std::make_unique<HeldRequest>(HeldRequest{given.endpoint, std::move(request)}));
  if (handle == nullptr)
    return smem_failure(given.call, SMEM_NO_RESOURCES,
                        fmt::format("there are {} requests already, the most", Requests::kMost));
  *given.request = handle;
  return SMEM_OK;
}

Made<const transfer::Pieces> read_list(void* const local[], void* const remote[],
                                       const std::size_t bytes[], std::uint64_t count) {
  if (local == nullptr || remote == nullptr || bytes == nullptr)
    return invalid("invalid local, remote or bytes, which is null");
  MEMSPAN_PASS(check_count(count));
  MEMSPAN_PASS(transfer::check_arrays(local, remote, bytes, count));
  std::vector<transfer::Piece> list(count);
  transfer::PieceArrays(local, remote, bytes, count).fill(0, list);
  return own(Result<transfer::PieceList>(transfer::PieceList(std::move(list))));
}

transfer::Strides read_blocks(const memspan_transfer_blocks_t& blocks) {
  return {reinterpret_cast<std::uint64_t>(blocks.base), blocks.stride, blocks.bytes, blocks.count};
}

transfer::Paging read_pages(const memspan_transfer_pages_t& pages, std::uint64_t count) {
  return {reinterpret_cast<std::uint64_t>(pages.base), {pages.pages, pages.pages + count}};
}

}  // namespace
}  // namespace memspan::capi

using namespace memspan;
using namespace memspan::capi;

MEMSPAN_EXPORT int32_t memspan_transfer_prepare(smem_trans_t endpoint,
                                                memspan_transfer_direction_t direction,
                                                const char* peer, void* const local[],
                                                void* const remote[], const size_t bytes[],
                                                uint64_t count, memspan_transfer_t* request) try {
  return prepare({"memspan_transfer_prepare", endpoint, number_of(direction), peer, request},
                 [&] { return read_list(local, remote, bytes, count); });
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t memspan_transfer_prepare_blocks(smem_trans_t endpoint,
                                                       memspan_transfer_direction_t direction,
                                                       const char* peer,
                                                       const memspan_transfer_blocks_t* local,
                                                       const memspan_transfer_blocks_t* remote,
                                                       memspan_transfer_t* request) try {
  return prepare(
      {"memspan_transfer_prepare_blocks", endpoint, number_of(direction), peer, request},
      [&]() -> Made<const transfer::Pieces> {
        if (local == nullptr || remote == nullptr)
          return invalid("invalid local or remote, which is null");
        return own(transfer::StridedPieces::make(read_blocks(*local), read_blocks(*remote)));
      });
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t memspan_transfer_prepare_pages(
    smem_trans_t endpoint, memspan_transfer_direction_t direction, const char* peer,
    const memspan_transfer_pages_t* local, const memspan_transfer_pages_t* remote,
    uint64_t page_bytes, uint64_t count, memspan_transfer_t* request) try {
  return prepare({"memspan_transfer_prepare_pages", endpoint, number_of(direction), peer, request},
                 [&]() -> Made<const transfer::Pieces> {
                   if (local == nullptr || remote == nullptr || local->pages == nullptr ||
                       remote->pages == nullptr)
                     return invalid("invalid local, remote or pages, which is null");
                   MEMSPAN_PASS(check_count(count));
                   return own(transfer::PagedPieces::make(read_pages(*local, count),
                                                          read_pages(*remote, count), page_bytes));
                 });
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t memspan_transfer_destroy(memspan_transfer_t request) try {
  constexpr const char* kCall = "memspan_transfer_destroy";
  {
    auto held = requests().use(request);
    if (!held) return bad_handle(kCall, request, "request");
    held->request->cancel();
  }
  const auto removed = requests().remove(request);
  if (removed == nullptr) return bad_handle(kCall, request, "request");
  // Another thread may have posted it before it was removed.
  removed->request->cancel();
  removed->request->wait_for_callback();
  return SMEM_OK;
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)
