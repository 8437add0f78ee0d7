// SPDX-License-Identifier: Apache-2.0
// How a process starts by attributes: what is checked, and which of the ways into a job it takes.
#pragma once

#include "capi/aclshmem/export.h"
#include "store/server.h"

namespace memspan::capi {

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

// A unique id is, as text, the place of a store that already listens in the process that made it
// and the secret that opens it, or "-" when the program chose what protects its stores:
// "10.0.0.1:40123 0123456789abcdef0123456789abcdef". Thread-safe.

bool is_unique_id_text(std::string_view text);

// Opens the store (world/membership.h says where) and keeps it for take_unique_id().
// kNotSupported when the text is longer than `most` bytes.
Result<std::string> open_unique_id(std::size_t most);

// The store's URL and secret; in the process that made the id, once also the store itself.
StorePlace take_unique_id(std::string_view text);

// ---- several jobs of one process, as CANN SHMEM numbers them

// Makes a number current once all work that was given to streams is done, which acts on what is
// current. 0, or a code: work of a stream may not do it, and a stream may take longer than calls
// of the job may wait.
int switch_instance(const char* call, std::uint64_t number);

// If the address has port 0 and SHMEM_INSTANCE_PORT_RANGE=FIRST:LAST is set, the port becomes FIRST
// plus the number. 0, or a code.
int complete_place(const char* call, std::uint64_t number, shmem_init_attr_t& attributes);

}  // namespace memspan::capi
