// SPDX-License-Identifier: Apache-2.0
// Transfers between endpoints, at once or by a stream.
#include <smem/host/smem_trans.h>

#include "capi/smem/endpoints.h"
#include "capi/smem/stream_table.h"
#include "core/log.h"
#include "observe/counters.h"

namespace memspan::capi {
namespace {

using transfer::Direction;

// The arguments of the callers; one piece is an array of one.
struct Arguments {
  const char* call;
  smem_trans_t handle;
  Direction direction;
  const char* peer;
  void* const* local;
  const void* const* remote;
  const std::size_t* bytes;
  std::uint32_t count;

  transfer::PieceArrays pieces() const { return {count, {local, remote, bytes}}; }
};

Status check(const Arguments& given) {
  if (given.handle == nullptr) return Status::ok();  // which is refused before the others
  if (given.local == nullptr) return invalid("invalid localAddrs, which is null");
  if (given.remote == nullptr) return invalid("invalid remoteAddrs, which is null");
  if (given.bytes == nullptr) return invalid("invalid dataSizes, which is null");
  if (given.count == 0) return invalid("invalid batchSize, which is 0");
  MEMSPAN_PASS(check_text("remoteUniqueId", given.peer));
  return transfer::check_arrays(given.local, given.remote, given.bytes, given.count);
}

// 0 while no call is recorded.
std::uint64_t recorded_bytes(const transfer::Pieces& pieces) {
  return is_recording() ? transfer::bytes_of(pieces) : 0;
}

std::int32_t move_pieces(const Arguments& given) {
  const auto move = [&](transfer::Endpoint& endpoint) {
    const transfer::PieceArrays pieces = given.pieces();
    RecordedCall recorded(CallKind::kTransfer, given.call, kNobodyNamed, recorded_bytes(pieces));
    return recorded.ends(endpoint.transfer(given.direction, given.peer, pieces));
  };
  return do_at_endpoint(
      given.call, given.handle, [&] { return check(given); }, move);
}

// It is not put into arrays, unless move_pieces() has to refuse it.
std::int32_t move_one_piece(const char* call, smem_trans_t handle, Direction direction,
                            const char* peer, void* local, const void* remote,
                            std::size_t bytes) try {
  auto endpoint = endpoints().use(handle);
  if (!endpoint || local == nullptr || remote == nullptr || bytes == 0 || peer == nullptr ||
      peer[0] == '\0') [[unlikely]]
    return move_pieces({call, handle, direction, peer, &local, &remote, &bytes, 1});
  RecordedCall recorded(CallKind::kTransfer, call, kNobodyNamed, bytes);
  const transfer::Piece piece{static_cast<std::byte*>(local),
                              reinterpret_cast<std::uint64_t>(remote), bytes};
  return smem_result(call, recorded.ends(endpoint->transfer(direction, peer, piece)));
}
MEMSPAN_CATCH_IN(call, SMEM_MALLOC_FAILED)

using Ends = transfer::Endpoint::Ends;

Status move_later(const void* handle, Direction direction, const std::string& peer,
                  const transfer::Pieces& pieces, Ends ends) {
  auto endpoint = endpoints().use(handle);
  if (!endpoint)
    return {Code::kUnavailable, "the endpoint was destroyed before the stream came to a transfer"};
  return endpoint->transfer(direction, peer, pieces, ends);
}

// No caller waits for a call of such a stream, so only the log has its failure.
std::int32_t submit_to_device(const Arguments& given, void* stream) {
  return with<Endpoints>(given.call, given.handle, [&](transfer::Endpoint& endpoint) {
    const transfer::DeviceStream where{
        .device = other_device(),
        .stream = stream,
        .move = [call = given.call, handle = given.handle, direction = given.direction,
                 peer = std::string(given.peer)](const transfer::PieceList& pieces) {
          const Status moved = move_later(handle, direction, peer, pieces, Ends::kHost);
          if (!moved.is_ok())
            log_line_limited(LogLevel::kError,
                             fmt::format("{} on a CUDA stream: {}", call, moved.message()));
        }};
    const transfer::PieceArrays pieces = given.pieces();
    RecordedCall recorded(CallKind::kTransfer, given.call, kNobodyNamed, recorded_bytes(pieces));
    return recorded.ends(endpoint.submit(given.direction, given.peer, pieces, where));
  });
}

std::int32_t submit_pieces(const Arguments& given, void* stream_handle) try {
  if (given.handle == nullptr) return endpoints().no_such(given.call, given.handle);
  if (Status status = check(given); !status.is_ok()) return smem_result(given.call, status);
  if (stream_handle == nullptr)
    return smem_failure(given.call, SMEM_INVALID_PARAM, "invalid stream, which is null");
  if (may_be_of_device(stream_handle)) return submit_to_device(given, stream_handle);
  auto stream = streams().use(stream_handle);
  if (!stream)
    return smem_failure(given.call, SMEM_INVALID_PARAM,
                        fmt::format("invalid stream: {} is not a stream", stream_handle));
  if (!endpoints().use(given.handle)) return endpoints().no_such(given.call, given.handle);
  std::vector<transfer::Piece> list(given.count);
  given.pieces().fill(0, list);
  // Shared because work can be copied.
  auto pieces = std::make_shared<const transfer::PieceList>(std::move(list));
  RecordedCall recorded(CallKind::kTransfer, given.call, kNobodyNamed, recorded_bytes(*pieces));
  return smem_result(
      given.call,
      recorded.ends(stream->submit([handle = given.handle, direction = given.direction,
                                    peer = std::string(given.peer), pieces = std::move(pieces)] {
        return move_later(handle, direction, peer, *pieces, Ends::kAny);
      })));
}
MEMSPAN_CATCH_IN(given.call, SMEM_MALLOC_FAILED)

}  // namespace
}  // namespace memspan::capi

using namespace memspan::capi;

MEMSPAN_EXPORT int32_t smem_trans_write(smem_trans_t handle, const void* localAddr,
                                        const char* remoteUniqueId, void* remoteAddr,
                                        size_t dataSize) {
  return move_one_piece(__func__, handle, Direction::kWrite, remoteUniqueId,
                        const_cast<void*>(localAddr), remoteAddr, dataSize);
}

MEMSPAN_EXPORT int32_t smem_trans_batch_write(smem_trans_t handle, const void* localAddrs[],
                                              const char* remoteUniqueId, void* remoteAddrs[],
                                              size_t dataSizes[], uint32_t batchSize) {
  return move_pieces({__func__, handle, Direction::kWrite, remoteUniqueId,
                      const_cast<void* const*>(localAddrs), remoteAddrs, dataSizes, batchSize});
}

MEMSPAN_EXPORT int32_t smem_trans_read(smem_trans_t handle, void* localAddr,
                                       const char* remoteUniqueId, const void* remoteAddr,
                                       size_t dataSize) {
  return move_one_piece(__func__, handle, Direction::kRead, remoteUniqueId, localAddr, remoteAddr,
                        dataSize);
}

MEMSPAN_EXPORT int32_t smem_trans_batch_read(smem_trans_t handle, void* localAddrs[],
                                             const char* remoteUniqueId, const void* remoteAddrs[],
                                             size_t dataSizes[], uint32_t batchSize) {
  return move_pieces({__func__, handle, Direction::kRead, remoteUniqueId, localAddrs, remoteAddrs,
                      dataSizes, batchSize});
}

MEMSPAN_EXPORT int32_t smem_trans_write_submit(smem_trans_t handle, const void* localAddr,
                                               const char* remoteUniqueId, void* remoteAddr,
                                               size_t dataSize, void* stream) {
  void* const local = const_cast<void*>(localAddr);
  return submit_pieces(
      {__func__, handle, Direction::kWrite, remoteUniqueId, &local, &remoteAddr, &dataSize, 1},
      stream);
}

MEMSPAN_EXPORT int32_t smem_trans_read_submit(smem_trans_t handle, void* localAddr,
                                              const char* remoteUniqueId, const void* remoteAddr,
                                              size_t dataSize, void* stream) {
  return submit_pieces(
      {__func__, handle, Direction::kRead, remoteUniqueId, &localAddr, &remoteAddr, &dataSize, 1},
      stream);
}

MEMSPAN_EXPORT int32_t smem_trans_batch_write_submit(smem_trans_t handle, const void* localAddrs[],
                                                     const char* remoteUniqueId,
                                                     void* remoteAddrs[], size_t dataSizes[],
                                                     uint32_t batchSize, void* stream) {
  return submit_pieces({__func__, handle, Direction::kWrite, remoteUniqueId,
                        const_cast<void* const*>(localAddrs), remoteAddrs, dataSizes, batchSize},
                       stream);
}

MEMSPAN_EXPORT int32_t smem_trans_batch_read_submit(smem_trans_t handle, void* localAddrs[],
                                                    const char* remoteUniqueId,
                                                    const void* remoteAddrs[], size_t dataSizes[],
                                                    uint32_t batchSize, void* stream) {
  return submit_pieces({__func__, handle, Direction::kRead, remoteUniqueId, localAddrs, remoteAddrs,
                        dataSizes, batchSize},
                       stream);
}

MEMSPAN_EXPORT int32_t smem_trans_check_flags(uint32_t flags) try {
  if (flags == 0 || flags == COPY_EXTEND_FLAG) return SMEM_OK;
  return smem_failure(
      __func__, SMEM_INVALID_PARAM,
      fmt::format("invalid flags, which is {:#x}: allowed are 0 and COPY_EXTEND_FLAG ({:#x})",
                  flags, COPY_EXTEND_FLAG));
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)
