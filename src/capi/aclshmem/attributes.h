// SPDX-License-Identifier: Apache-2.0
// How a process starts by attributes: what is checked, and which of the ways into a job it takes.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "capi/aclshmem/export.h"
#include "core/mutex.h"
#include "store/server.h"

namespace memspan::capi {

// The API's only state: the attribute object of shmem_set_attr(), the unique id last given to
// aclshmemx_set_attr_uniqueid_args(), and the store of an unused unique id of this process.
struct AclshmemState {
  shmem_init_attr_t attributes{};
  aclshmemx_uniqueid_t given_id{};
  Mutex mutex;
  std::string unique_id MEMSPAN_GUARDED_BY(mutex);
  std::shared_ptr<StoreServer> unique_id_server MEMSPAN_GUARDED_BY(mutex);
};
AclshmemState& aclshmem_state();

inline constexpr int kMostPes = 16384;
inline constexpr std::uint32_t kDefaultTimeoutSeconds = 120;

// 0, or what is wrong with the attributes (in the documented order), already kept as last error.
int check_attributes(const char* call, const shmem_init_attr_t& attributes);
// Like check_attributes(), but only for the numbers.
int check_numbers(const char* call, int rank, int size, std::uint64_t bytes);

// Joins as launched, as a job of one PE, or through `store`, whose URL comes from a unique id or
// from the attributes.
struct StorePlace {
  std::string url;
  std::string secret = {};                   // of a unique id; empty: as the process chose
  std::shared_ptr<StoreServer> hosted = {};  // owners: see Rendezvous
};
int start_by_attributes(const char* call, const shmem_init_attr_t& attributes,
                        const StorePlace& store);

}  // namespace memspan::capi
