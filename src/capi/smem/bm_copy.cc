// SPDX-License-Identifier: Apache-2.0
// Copies of Big Memory: what the ten types say of each end, single ones and batches, at once and in
// the background.

#include "capi/smem/bm.h"
#include "fabric/pool_copy.h"
#include "observe/counters.h"

namespace memspan::capi {
namespace {

constexpr CopyEnds kToPool{CopyEnd::kLocal, CopyEnd::kPool};
constexpr CopyEnds kFromPool{CopyEnd::kPool, CopyEnd::kLocal};
// By smem_bm_copy_type. Which of the two address ranges an end of the pool is in, its address says.
constexpr std::array<CopyEnds, SMEMB_COPY_BUTT> kEnds{
    kToPool,                            // L2G
    kFromPool,                          // G2L
    kFromPool,                          // G2H
    kToPool,                            // H2G
    kToPool,                            // L2GH
    kFromPool,                          // GH2L
    kFromPool,                          // GH2H
    kToPool,                            // H2GH
    {CopyEnd::kPool, CopyEnd::kPool},   // G2G
    {CopyEnd::kLocal, CopyEnd::kLocal}  // AUTO
};

Status check_type(int type) {
  if (type >= 0 && type < SMEMB_COPY_BUTT) return Status::ok();
  return invalid("invalid param, type invalid: {}, allowed are 0 to {}", type, SMEMB_COPY_BUTT - 1);
}

Status check_batch(const smem_batch_copy_params* params, int type) {
  if (params == nullptr) return invalid("invalid param, params is null");
  if (params->sources == nullptr) return null_argument("sources");
  if (params->destinations == nullptr) return null_argument("destinations");
  if (params->dataSizes == nullptr) return null_argument("dataSizes");
  if (params->batchSize == 0) return invalid("invalid param, batchSize is 0");
  return check_type(type);
}

Status check_results(const smem_batch_copy_result* results, std::uint32_t count,
                     std::uint32_t flags) {
  const std::uint32_t room =
      results == nullptr || results->results == nullptr ? 0 : results->batchSize;
  if (room < count)
    return invalid("invalid param, results have room for {} codes, {} are needed", room, count);
  if ((flags & ASYNC_COPY_FLAG) != 0)
    return invalid("invalid flags: results cannot be given before the copies are done");
  return Status::ok();
}

CopyPiece piece_of(const smem_batch_copy_params& params, std::size_t i) {
  return {params.sources[i], params.destinations[i], params.dataSizes[i]};
}

Status name_element(const Status& status, std::size_t i, std::size_t count) {
  return status.annotate(fmt::format("element {} of {}", i, count));
}

// The ranks that the pieces wait for: those of their ends, but this one only with no other.
std::set<std::uint32_t> ranks_of(Pool& pool, std::span<const CopyPiece> pieces) {
  std::set<std::uint32_t> ranks;
  for (const CopyPiece& piece : pieces)
    for (const void* const end : {piece.from, static_cast<const void*>(piece.to)})
      if (const auto place = find_place(pool, end)) ranks.insert(place->rank);
  if (ranks.size() > 1) ranks.erase(pool.rank());
  return ranks;
}

Status copy_one(BigMemory& memory, const CopyEnds& ends, const CopyPiece& piece, Duration limit) {
  PoolCopier copier(*memory.pool, ends, limit, piece.bytes);
  MEMSPAN_PASS(copier.copy(piece));
  return copier.finish();
}

// Copies the pieces `piece_at(0)` to `piece_at(count - 1)`. `failed` gets each piece that cannot be
// copied and returns whether to continue. Returns the failure of what was completed together.
template <typename PieceAt, typename Failed>
Status copy_pieces(BigMemory& memory, const CopyEnds& ends, Duration limit, std::size_t count,
                   PieceAt piece_at, CopyCompletion completion, Failed failed) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) bytes += piece_at(i).bytes;
  PoolCopier copier(*memory.pool, ends, limit, bytes, completion);
  for (std::size_t next = 0; next < count; ++next) {
    const Status status = copier.copy_row(next, count, piece_at);
    if (status.is_ok() || !failed(next, status)) break;
  }
  return copier.finish();
}

// The first piece that cannot be copied ends it.
template <typename PieceAt>
Status copy_all(BigMemory& memory, const CopyEnds& ends, Duration limit, std::size_t count,
                PieceAt piece_at) {
  Status first;
  const Status last = copy_pieces(memory, ends, limit, count, piece_at, CopyCompletion::kTogether,
                                  [&](std::size_t i, const Status& status) {
                                    first = name_element(status, i, count);
                                    return false;
                                  });
  return first.is_ok() ? last : first;
}

// Copies all pieces that can be copied. The pieces of each rank get a part of the time, so that one
// that does not answer leaves some for the others.
template <typename Failed>
Status copy_each(BigMemory& memory, const smem_batch_copy_params& params, const CopyEnds& ends,
                 Failed failed) {
  const auto piece_at = [&](std::size_t i) { return piece_of(params, i); };
  if (!memory.pool->is_spread())
    return copy_pieces(memory, ends, memory.limit, params.batchSize, piece_at,
                       CopyCompletion::kEach, failed);
  std::map<std::set<std::uint32_t>, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < params.batchSize; ++i) {
    const CopyPiece piece = piece_at(i);
    groups[ranks_of(*memory.pool, {&piece, 1})].push_back(i);
  }
  const Deadline deadline = memory.deadline();
  Status first;
  std::size_t left = groups.size();
  for (const auto& group : groups) {
    const std::vector<std::size_t>& places = group.second;
    const Status status = copy_pieces(
        memory, ends, deadline.remaining() / left--, places.size(),
        [&](std::size_t i) { return piece_at(places[i]); }, CopyCompletion::kEach,
        [&](std::size_t i, const Status& why) { return failed(places[i], why); });
    if (first.is_ok()) first = status;
  }
  return first;
}

// The arrays are the caller's again when it returns, so they are copied.
Status begin_batch(BigMemory& memory, const smem_batch_copy_params& params, const CopyEnds& ends) {
  std::vector<CopyPiece> pieces(params.batchSize);
  for (std::uint32_t i = 0; i < params.batchSize; ++i) pieces[i] = piece_of(params, i);
  auto ranks = ranks_of(*memory.pool, pieces);
  return memory.copies.begin(
      std::move(ranks), [&memory, ends, all = std::move(pieces), deadline = memory.deadline()] {
        return copy_all(memory, ends, deadline.remaining(), all.size(),
                        [&](std::size_t i) { return all[i]; });
      });
}

}  // namespace
}  // namespace memspan::capi

using namespace memspan;
using namespace memspan::capi;

MEMSPAN_EXPORT int32_t smem_bm_copy(smem_bm_t handle, smem_copy_params* params, smem_bm_copy_type t,
                                    uint32_t flags) try {
  const char* const call = __func__;
  if (params == nullptr) return smem_result(call, invalid("invalid param, params is null"));
  if (const Status status = check_type(number_of(t)); !status.is_ok())
    return smem_result(call, status);
  return with<Pools>(call, handle, [&](BigMemory& memory) {
    const CopyPiece piece{params->src, params->dest, params->dataSize};
    RecordedCall recorded(CallKind::kCopy, call, kNobodyNamed, piece.bytes);
    const CopyEnds ends = kEnds[t];
    if ((flags & ASYNC_COPY_FLAG) == 0)
      return recorded.ends(copy_one(memory, ends, piece, memory.limit));
    return recorded.ends(memory.copies.begin(
        ranks_of(*memory.pool, {&piece, 1}), [&memory, piece, ends, deadline = memory.deadline()] {
          return copy_one(memory, ends, piece, deadline.remaining());
        }));
  });
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t smem_bm_copy_batch(smem_bm_t handle, smem_batch_copy_params* params,
                                          smem_bm_copy_type t, uint32_t flags) try {
  const char* const call = __func__;
  if (const Status status = check_batch(params, number_of(t)); !status.is_ok())
    return smem_result(call, status);
  return with<Pools>(call, handle, [&](BigMemory& memory) {
    RecordedCall recorded(CallKind::kCopy, call, kNobodyNamed,
                          counted_bytes(params->dataSizes, params->batchSize));
    if ((flags & ASYNC_COPY_FLAG) != 0)
      return recorded.ends(begin_batch(memory, *params, kEnds[t]));
    return recorded.ends(copy_all(memory, kEnds[t], memory.limit, params->batchSize,
                                  [&](std::size_t i) { return piece_of(*params, i); }));
  });
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t smem_bm_copy_batch_partial_succeed(smem_bm_t handle,
                                                          smem_batch_copy_params* params,
                                                          smem_bm_copy_type t, uint32_t flags,
                                                          smem_batch_copy_result* results) try {
  const char* const call = __func__;
  Status status = check_batch(params, number_of(t));
  if (status.is_ok()) status = check_results(results, params->batchSize, flags);
  if (!status.is_ok()) return smem_result(call, status);
  return with<Pools>(call, handle, [&](BigMemory& memory) {
    RecordedCall recorded(CallKind::kCopy, call, kNobodyNamed,
                          counted_bytes(params->dataSizes, params->batchSize));
    std::fill_n(results->results, params->batchSize, SMEM_OK);
    std::uint32_t failures = 0;
    std::size_t first_at = params->batchSize;
    Status first;
    const Status last =
        copy_each(memory, *params, kEnds[t], [&](std::size_t at, const Status& why) {
          results->results[at] = smem_code(why);
          ++failures;
          if (at < first_at) first = name_element(why, first_at = at, params->batchSize);
          return true;
        });
    static_cast<void>(recorded.ends(failures == 0 ? last : first));
    if (failures == 0) return smem_result(call, last);
    return smem_failure(call, SMEM_PARTIAL_FAILED,
                        fmt::format("{} of {} elements failed; the first: {}", failures,
                                    params->batchSize, first.message()));
  });
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t smem_bm_wait(smem_bm_t handle) {
  return with<Pools>(__func__, handle,
                     [](BigMemory& memory) { return memory.copies.wait(memory.deadline()); });
}
