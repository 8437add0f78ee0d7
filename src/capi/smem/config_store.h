// SPDX-License-Identifier: Apache-2.0
// The stores that this process hosts.
#pragma once

#include "core/status.h"
#include "net/security.h"
#include "store/store_address.h"

namespace memspan::capi {

// kInvalidArgument names what is wrong, also for a null or empty URL.
Result<StoreAddress> read_url(const char* url);

// Until smem_destroy_config_store(), the last of stop_using_stores() or the end of the process. Ok
// also if this process already serves the endpoint, and for etcd, which runs without it.
// kUnavailable when another socket has the endpoint. Thread-safe.
Status host_store(const StoreAddress& address, const StoreSecurity& security);
// Like host_store(), for a lost store. Ok also when this process has ended the one that it hosted.
Status host_store_again(const StoreAddress& address, const StoreSecurity& security);

// Which parts of MemFabric are initialized here ("bm", "shm", "trans"). When the last of them ends,
// so do the stores that this process hosts. Thread-safe; a part that is not initialized ends
// nothing.
void start_using_stores(const char* part);
void stop_using_stores(const char* part);

}  // namespace memspan::capi
