// SPDX-License-Identifier: Apache-2.0
// Copies of Big Memory: what the ten types say of each end, single ones and batches, at once and in
// the background.
#include <fmt/format.h>

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "capi/smem/bm.h"
#include "fabric/pool_copy.h"

namespace memspan::capi {
namespace {

constexpr CopyEnds kToPool{CopyEnd::kLocal, CopyEnd::kPool};
constexpr CopyEnds kFromPool{CopyEnd::kPool, CopyEnd::kLocal};
// By smem_bm_copy_type. Which of the two spaces an end of the pool is in, its address says.
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

Status check_type(smem_bm_copy_type type) {
  if (type >= 0 && type < SMEMB_COPY_BUTT) return Status::ok();
  return {Code::kInvalidArgument,
          fmt::format("invalid param, type invalid: {}, allowed are 0 to {}",
                      static_cast<int>(type), SMEMB_COPY_BUTT - 1)};
}

Status check_batch(const smem_batch_copy_params* params, smem_bm_copy_type type) {
  const auto missing = [](const char* what) {
    return Status(Code::kInvalidArgument, fmt::format("invalid param, {}", what));
  };
  if (params == nullptr) return missing("params is null");
  if (params->sources == nullptr) return missing("sources is NULL");
  if (params->destinations == nullptr) return missing("destinations is NULL");
  if (params->dataSizes == nullptr) return missing("dataSizes is NULL");
  if (params->batchSize == 0) return missing("batchSize is 0");
  return check_type(type);
}

CopyPiece piece_of(const smem_batch_copy_params& params, std::uint32_t i) {
  return {params.sources[i], params.destinations[i], params.dataSizes[i]};
}

Status name_element(const Status& status, std::size_t i, std::size_t count) {
  return status.annotate(fmt::format("element {} of {}", i, count));
}

Status copy_batch(BigMemory& memory, const smem_batch_copy_params& params, const CopyEnds& ends) {
  PieceCopier copier(*memory.pool, ends, memory.limit);
  for (std::uint32_t i = 0; i < params.batchSize; ++i)
    if (Status status = copier.copy(piece_of(params, i)); !status.is_ok())
      return name_element(status, i, params.batchSize);
  return Status::ok();
}

// The arrays are the caller's again when it returns, so they are copied.
Status begin_batch(BigMemory& memory, const smem_batch_copy_params& params, const CopyEnds& ends) {
  std::vector<CopyPiece> pieces(params.batchSize);
  for (std::uint32_t i = 0; i < params.batchSize; ++i) pieces[i] = piece_of(params, i);
  return memory.copies.begin(
      [pool = memory.pool.get(), limit = memory.limit, ends, all = std::move(pieces)] {
        PieceCopier copier(*pool, ends, limit);
        for (std::size_t i = 0; i < all.size(); ++i)
          if (Status status = copier.copy(all[i]); !status.is_ok())
            return name_element(status, i, all.size());
        return Status::ok();
      });
}

}  // namespace
}  // namespace memspan::capi

using namespace memspan;
using namespace memspan::capi;

MEMSPAN_EXPORT int32_t smem_bm_copy(smem_bm_t handle, smem_copy_params* params, smem_bm_copy_type t,
                                    uint32_t flags) {
  return with_pool(__func__, handle, [&](BigMemory& memory) {
    constexpr const char* kCall = "smem_bm_copy";
    if (params == nullptr)
      return smem_failure(kCall, SMEM_INVALID_PARAM, "invalid param, params is null");
    if (const Status status = check_type(t); !status.is_ok()) return smem_result(kCall, status);
    const CopyPiece piece{params->src, params->dest, params->dataSize};
    const CopyEnds ends = kEnds[t];
    if ((flags & ASYNC_COPY_FLAG) == 0)
      return smem_result(kCall, copy_piece(*memory.pool, piece, ends, memory.limit));
    return smem_result(
        kCall, memory.copies.begin([pool = memory.pool.get(), piece, ends, limit = memory.limit] {
          return copy_piece(*pool, piece, ends, limit);
        }));
  });
}

MEMSPAN_EXPORT int32_t smem_bm_copy_batch(smem_bm_t handle, smem_batch_copy_params* params,
                                          smem_bm_copy_type t, uint32_t flags) {
  return with_pool(__func__, handle, [&](BigMemory& memory) {
    constexpr const char* kCall = "smem_bm_copy_batch";
    if (const Status status = check_batch(params, t); !status.is_ok())
      return smem_result(kCall, status);
    return smem_result(kCall, (flags & ASYNC_COPY_FLAG) == 0
                                  ? copy_batch(memory, *params, kEnds[t])
                                  : begin_batch(memory, *params, kEnds[t]));
  });
}

MEMSPAN_EXPORT int32_t smem_bm_copy_batch_partial_succeed(smem_bm_t handle,
                                                          smem_batch_copy_params* params,
                                                          smem_bm_copy_type t, uint32_t flags,
                                                          smem_batch_copy_result* results) {
  return with_pool(__func__, handle, [&](BigMemory& memory) {
    constexpr const char* kCall = "smem_bm_copy_batch_partial_succeed";
    if (const Status status = check_batch(params, t); !status.is_ok())
      return smem_result(kCall, status);
    if (results == nullptr || results->results == nullptr || results->batchSize < params->batchSize)
      return smem_failure(
          kCall, SMEM_INVALID_PARAM,
          fmt::format("invalid param, results have room for {} codes, {} are needed",
                      results == nullptr || results->results == nullptr ? 0 : results->batchSize,
                      params->batchSize));
    if ((flags & ASYNC_COPY_FLAG) != 0)
      return smem_failure(kCall, SMEM_INVALID_PARAM,
                          "invalid flags: results cannot be given before the copies are done");
    std::uint32_t failures = 0;
    Status first;
    for (std::uint32_t i = 0; i < params->batchSize; ++i) {
      const Status status = copy_piece(*memory.pool, piece_of(*params, i), kEnds[t], memory.limit);
      results->results[i] = smem_code(status);
      if (status.is_ok() || failures++ > 0) continue;
      first = name_element(status, i, params->batchSize);
    }
    if (failures == 0) return SMEM_OK;
    return smem_failure(kCall, SMEM_PARTIAL_FAILED,
                        fmt::format("{} of {} elements failed; the first: {}", failures,
                                    params->batchSize, first.message()));
  });
}

MEMSPAN_EXPORT int32_t smem_bm_wait(smem_bm_t handle) {
  return with_pool(__func__, handle, [](BigMemory& memory) {
    return smem_result("smem_bm_wait", memory.copies.wait(Deadline::after(memory.limit)));
  });
}
