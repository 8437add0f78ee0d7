/* SPDX-License-Identifier: Apache-2.0
 *
 * The host device's part of <memspan/kernel.h>; programs call that header's functions. memspan's
 * own.
 *
 * Thread-safe. PEs are those of the world. A mistake in an argument, and a peer's death, end the
 * process with a line that says what is wrong, as in host calls.
 */
#ifndef MEMSPAN_KERNEL_CALLS_H
#define MEMSPAN_KERNEL_CALLS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -1 before the start. */
int memspan_kernel_my_pe(void);
int memspan_kernel_n_pes(void);
/* The job that calls act on (aclshmemx_instance_ctx_set()); ends the process when that is not the
 * one that the kernel needs. */
uint64_t memspan_kernel_instance(void);
void memspan_kernel_need_instance(uint64_t instance);
/* Teams are numbered as in <aclshmem.h>; -1: this PE, or that one, is not in it. */
int memspan_kernel_team_my_pe(int team);
int memspan_kernel_team_n_pes(int team);
int memspan_kernel_team_translate_pe(int source_team, int pe, int dest_team);
/* The address at which loads and stores reach the PE's copy, or NULL. */
void* memspan_kernel_ptr(const void* address, int pe);

/* When a put returns, `source` may be changed; when a get returns, the bytes have arrived. */
void memspan_kernel_put(void* dest, const void* source, size_t bytes, int pe);
void memspan_kernel_get(void* dest, const void* source, size_t bytes, int pe);
/* One aligned word, by one load or store that never tears. */
void memspan_kernel_put_word4(void* dest, uint32_t value, int pe);
void memspan_kernel_put_word8(void* dest, uint64_t value, int pe);
uint32_t memspan_kernel_get_word4(const void* source, int pe);
uint64_t memspan_kernel_get_word8(const void* source, int pe);
/* `count` rows of `bytes` each, whose beginnings are so many bytes apart. */
void memspan_kernel_put_rows(void* dest, const void* source, ptrdiff_t dest_pitch,
                             ptrdiff_t source_pitch, size_t bytes, size_t count, int pe);
void memspan_kernel_get_rows(void* dest, const void* source, ptrdiff_t dest_pitch,
                             ptrdiff_t source_pitch, size_t bytes, size_t count, int pe);

/* Atomic operations on an aligned word of `width` 4 or 8 bytes; operands are in the low bytes.
 * MEMSPAN_KERNEL_FETCH and what gives a value before complete at return. */
enum {
  MEMSPAN_KERNEL_FETCH,
  MEMSPAN_KERNEL_SET,
  MEMSPAN_KERNEL_SWAP,
  MEMSPAN_KERNEL_COMPARE_SWAP,
  MEMSPAN_KERNEL_ADD,
  MEMSPAN_KERNEL_AND,
  MEMSPAN_KERNEL_OR,
  MEMSPAN_KERNEL_XOR
};
uint64_t memspan_kernel_fetch_atomic(int operation, int width, const void* word, uint64_t operand,
                                     uint64_t compare, int pe);
void memspan_kernel_change_atomic(int operation, int width, void* word, uint64_t operand, int pe);

void memspan_kernel_fence(void);
void memspan_kernel_quiet(void);

/* Memory of the thread that runs the block, for as long as the block runs; undefined bytes at its
 * start. Aligned to 64 bytes; a fresh thread's costs pages as they are used. */
#define MEMSPAN_KERNEL_SCRATCH_BYTES 262144
void* memspan_kernel_scratch(void);
/* All blocks of the grid that have not begun will, whatever this one does: for a block that looks
 * for what others do without a wait of the library. */
void memspan_kernel_let_others_begin(void);

/* Numbers in the grid that this thread runs a block of; 0 of 1 outside of a grid. */
unsigned memspan_kernel_block(void);
unsigned memspan_kernel_blocks(void);
/* All blocks of the grid meet; then the grid of each member of the team, which may be the only
 * one (MEMSPAN_KERNEL_GRID). */
#define MEMSPAN_KERNEL_GRID (-1)
void memspan_kernel_sync(int team);
/* As memspan_kernel_sync() after the grid's puts are complete. */
void memspan_kernel_barrier(int team);
/* The same for some of the team's members, `count` of them, this PE among them, in any order. */
void memspan_kernel_barrier_some(int team, const uint32_t* members, uint32_t count);

/* Counts how often this block runs a frame, 0 to 1023, and for how many cycles of the processor's
 * time stamp (aclshmemx_get_prof()); where SHMEM_CYCLE_PROF_PE names this PE. */
void memspan_kernel_begin_frame(int frame);
void memspan_kernel_end_frame(int frame);

/* Until is_true(context) is not 0. It must load symmetric words of this PE with acquire order. */
void memspan_kernel_wait(int (*is_true)(void* context), void* context, const char* call);

#ifdef __cplusplus
}
#endif

#endif /* MEMSPAN_KERNEL_CALLS_H */
