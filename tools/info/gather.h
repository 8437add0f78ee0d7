// SPDX-License-Identifier: Apache-2.0
// What memspan asks of a machine, found out without changing it and in a tenth of a second.
#pragma once

#include <optional>
#include <string>

#include "core/clock.h"
#include "info/finding.h"
#include "system_files/system_files.h"

namespace memspan::info {

// ---- from files, which tests replace

int numa_nodes(const SystemFiles& files);
// Kernel, processor, cores, control group's share of them, NUMA nodes.
Findings gather_host(const SystemFiles& files);
// Huge pages, overcommitment, the mappings that a process may have, /dev/shm.
Findings gather_memory(const SystemFiles& files);
// Limits of a process: descriptors, addresses, sizes of files, locked memory, processes.
Findings gather_limits(const SystemFiles& files);
// The processes that Yama lets into another's memory.
Finding gather_ptrace_scope(const SystemFiles& files);

// ---- from the kernel and the library

// The memory that heaps may use (memory/budget.h).
Findings gather_budget();
// The fastest way to copy blocks of 256 KiB to 16 MiB, found by some 50 ms of copies.
Finding gather_copies();
// Tries each optional system call that memspan uses.
Findings gather_kernel(const SystemFiles& files);
// Asking a CUDA device for its name starts its driver, which may take a second. On a machine with a
// GPU the caller must ask for it.
enum class AskDevices { kIfQuick, kAlways };
Findings gather_devices(const SystemFiles& files, AskDevices ask);
// Transports, carriers, engines.
Findings gather_transports();

// ---- names of hosts, which are looked up in the network

// If the user asked for something else, and if the user named a host.
inline constexpr Duration kUnaskedPatience = std::chrono::milliseconds(50);
inline constexpr Duration kAskedPatience = std::chrono::seconds(2);

// ---- TLS

// The options of a start; the environment supplies the rest. A value.
struct TlsWish {
  std::string url = {};          // of the store; empty: as the environment says, or none
  std::string tls_info = {};     // certificates, as shmem_set_conf_store_tls() takes them
  std::string secret_file = {};  // instead of MEMSPAN_JOB_SECRET_FILE
  // For names of hosts.
  Duration patience = kUnaskedPatience;
};
// The protection of the connection to the store, and whether it works.
Findings gather_tls(const TlsWish& wish);

}  // namespace memspan::info
