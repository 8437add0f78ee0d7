/* SPDX-License-Identifier: Apache-2.0
 *
 * The data about the job for kernels that run on a device (CUDA), and the ring by which they ask
 * the host for operations that the device cannot do. Programs include <memspan/kernel.h>. memspan's
 * own.
 *
 * The library fills a memspan_kernel_state and gives it to every translation unit with kernels,
 * which keeps a copy in the device's constant memory. All that its pointers name is memory that a
 * unit has mapped or allocated for the device.
 */
#ifndef MEMSPAN_KERNEL_STATE_H
#define MEMSPAN_KERNEL_STATE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows with every change of this file: library and unit must have the same. */
#define MEMSPAN_KERNEL_STATE_VERSION 3

/* The operations that a kernel asks the host for. PUT and those of atomics that give no value are
 * posted: the kernel continues at once. The others are answered. */
enum {
  MEMSPAN_KERNEL_ASK_PUT = 1, /* `rows` rows of `row_bytes`, packed in the payload, to `address` */
  MEMSPAN_KERNEL_ASK_GET,     /* the same, from `address` into the payload */
  MEMSPAN_KERNEL_ASK_CHANGE,  /* memspan_kernel_change_atomic() */
  MEMSPAN_KERNEL_ASK_FETCH,   /* memspan_kernel_fetch_atomic() */
  MEMSPAN_KERNEL_ASK_FENCE,   /* posted */
  MEMSPAN_KERNEL_ASK_QUIET,
  MEMSPAN_KERNEL_ASK_TEAM_MY_PE, /* of `team` */
  MEMSPAN_KERNEL_ASK_TEAM_N_PES,
  MEMSPAN_KERNEL_ASK_TRANSLATE, /* PE `pe` of `team` in `other_team` */
  MEMSPAN_KERNEL_ASK_SYNC,      /* with the members of `team` */
  MEMSPAN_KERNEL_ASK_BARRIER
};

typedef struct memspan_kernel_question {
  uint32_t operation;
  uint32_t is_posted;
  int32_t pe;
  int32_t team;
  int32_t other_team;
  uint32_t atomic_kind; /* of <memspan/kernel_calls.h> */
  uint32_t atomic_width;
  uint32_t reserved;
  uint64_t address; /* of this PE, symmetric */
  int64_t pitch;    /* from row to row at `address`, in bytes */
  uint64_t row_bytes;
  uint64_t rows;
  uint64_t operand;
  uint64_t compare;
} memspan_kernel_question;

#define MEMSPAN_KERNEL_PAYLOAD_BYTES 32768

/* A slot of a ring. `turn` says whose it is; in round r of the ring:
 *
 *   3r      free                    the thread of the kernel whose ticket names the slot fills it,
 *   3r + 1  filled                  the host does what it says,
 *   3r + 2  answered                the same thread takes the answer; a posted one skips this,
 *   3r + 3  free for round r + 1
 */
typedef struct memspan_kernel_request {
  uint64_t turn;
  uint64_t answer;
  memspan_kernel_question question;
  uint64_t padding[4];
  unsigned char payload[MEMSPAN_KERNEL_PAYLOAD_BYTES];
} memspan_kernel_request;

/* Many threads of the device ask, one thread of the host does it, in the order of tickets. */
typedef struct memspan_kernel_ring {
  uint64_t* next_ticket; /* changed by the device only */
  memspan_kernel_request* slots;
  uint64_t slot_count; /* a power of two */
} memspan_kernel_ring;

/* A team whose members are start, start + stride, ... of the world; number 0: none. */
typedef struct memspan_kernel_team {
  int32_t number;
  int32_t my_pe;
  int32_t n_pes;
  int32_t start;
  int32_t stride;
  int32_t reserved[3];
} memspan_kernel_team;

/* A team's entry is that of its number modulo this, and the last one is that of all PEs; the host
 * is asked about those without one. */
#define MEMSPAN_KERNEL_TEAMS 256
/* PEs whose memory a device may reach: so many from `first_near` on. */
#define MEMSPAN_KERNEL_NEAR_PES 256
/* The values of the stop word. */
enum {
  MEMSPAN_KERNEL_GO_ON,
  MEMSPAN_KERNEL_PEER_DIED, /* waits for words of this PE fail: they may never come */
  MEMSPAN_KERNEL_NOT_SERVED /* the job ends: nothing is answered any more, either */
};
/* No distance: the host does the operations on that PE. Distances are whole pages. */
#define MEMSPAN_KERNEL_FAR 1

typedef struct memspan_kernel_state {
  uint32_t version; /* 0: in no job */
  int32_t my_pe;
  int32_t n_pes;
  int32_t first_near;
  uint64_t heap_base; /* symmetric memory of this PE that the device reaches */
  uint64_t heap_bytes;
  /* The distance from an address of this PE's heap to that PE's copy. */
  int64_t distances[MEMSPAN_KERNEL_NEAR_PES];
  /* The same for the symmetric heap in memory of the device; 0 bytes: not allocated (yet). The
   * device's own atomics work on it. */
  uint64_t device_heap_base;
  uint64_t device_heap_bytes;
  int64_t device_distances[MEMSPAN_KERNEL_NEAR_PES];
  const memspan_kernel_team* teams; /* MEMSPAN_KERNEL_TEAMS + 1 */
  const uint32_t* stop;
  uint32_t* waits;        /* set to 1 now and then by a thread that waits for a word of this PE */
  uint64_t wait_limit_ns; /* no such wait lasts longer; 0: it may */
  memspan_kernel_ring requests;
  memspan_kernel_ring meetings; /* SYNC and BARRIER, which may take long */
  uint32_t has_far_pes;         /* some PE is reached by the host only */
  uint32_t has_native_atomics;  /* the device's atomics on the host's heap are atomic for all */
} memspan_kernel_state;

/* A translation unit with kernels. The functions that return text return NULL, or why they failed;
 * they are called one at a time. */
typedef struct memspan_kernel_unit {
  uint32_t version; /* MEMSPAN_KERNEL_STATE_VERSION */
  /* Makes host memory reachable for the device at the same addresses, or takes that back. */
  const char* (*map)(void* memory, size_t bytes);
  void (*unmap)(void* memory);
  /* Zeroed memory that only the device uses. */
  const char* (*allocate)(void** memory, size_t bytes);
  void (*release)(void* memory);
  /* Whether the device's atomics on mapped memory are atomic for the host and other devices. */
  int (*has_native_atomics)(void);
  const char* (*set_state)(const memspan_kernel_state* state);
  struct memspan_kernel_unit* next; /* the library's */
} memspan_kernel_unit;

/* The library calls `set_state` whenever the job that calls act on begins, ends or changes, and at
 * once when there is one; again when the heap in memory of the device is made. No kernel runs
 * during the call. The unit stays until it is given back. */
void memspan_kernel_register_unit(memspan_kernel_unit* unit);
void memspan_kernel_unregister_unit(memspan_kernel_unit* unit);

#ifdef __cplusplus
}
#endif

#endif /* MEMSPAN_KERNEL_STATE_H */
