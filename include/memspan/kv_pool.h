/* SPDX-License-Identifier: Apache-2.0
 *
 * A pool of KV blocks for many engines: entries of bytes that are put once under a hash of what
 * they hold, and found by every member of a Big Memory pool (smem/host/smem_bm.h). memspan's own.
 * C99 or C++11.
 *
 *   smem_bm_t pool = smem_bm_create2(...);   the members' shares are its host memory; 0 bytes: a
 *   memspan_kv_start(pool, 0);               member that gives none
 *   smem_bm_join(pool, 0);
 *
 * Any member may put into the share of any member on its host, finds entries in all of them, and
 * reads those of members on other hosts. If the pool is full, a clock (second chance) evicts
 * entries that were not used again, but none that a live process is reading or writing. A member
 * may be killed at any moment: what it put stays, but for what lay in its own share; what it had
 * half written is never read, and its slot is used again.
 *
 * Thread-safe. Functions return SMEM_OK or a code of smem/host/smem.h, and memspan_last_error()
 * says why in a sentence. None of them waits for another process of this host.
 */
#ifndef MEMSPAN_KV_POOL_H
#define MEMSPAN_KV_POOL_H

#include <smem/host/smem_bm.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A hash of what an entry holds (BLAKE2b, SHA-256): entries of one key have the same bytes. */
typedef struct {
  uint8_t bytes[32];
} memspan_kv_key_t;

/* Makes a share of this process's host memory in the pool, in up to 32 sections, each of which has
 * entries of about one size: 0 says by its size (one for each 64 MiB). Before smem_bm_join().
 * SMEM_INVALID_PARAM for a share below 1 MiB (but 0), or too many sections for it; SMEM_DUPLICATED
 * when it was called before. */
int32_t memspan_kv_start(smem_bm_t pool, uint32_t sections);

/* The number of keys, from the first on, that are present without a gap. `bytes` (may be NULL): of
 * each key's entry, 0 if it is missing. Marks them as used. */
int32_t memspan_kv_lookup(smem_bm_t pool, const memspan_kv_key_t* keys, size_t count,
                          uint64_t* bytes, size_t* found);

/* The result for a key; success is 1 or more. */
enum {
  MEMSPAN_KV_ABSENT = 0,  /* get: missing (or evicted); do not use the bytes that were read */
  MEMSPAN_KV_DONE = 1,    /* got, or put */
  MEMSPAN_KV_PRESENT = 2, /* put: already present, or another member is putting it */
  MEMSPAN_KV_NO_ROOM = -1 /* put: all that could hold it is in use, or too small */
};

/* Entries in pieces: key i's bytes are those at addresses[i * pieces] and the pieces - 1 after it,
 * of sizes[0] to sizes[pieces - 1] bytes, one behind the other. results[i] says what became of it.
 * SMEM_INVALID_PARAM when an address has no memory, or an entry has other than this number of bytes
 * (get); the results before are right then, and those from there on are ABSENT or NO_ROOM. */
int32_t memspan_kv_put(smem_bm_t pool, const memspan_kv_key_t* keys, size_t count,
                       void* const* addresses, const uint64_t* sizes, size_t pieces,
                       int32_t* results);
int32_t memspan_kv_get(smem_bm_t pool, const memspan_kv_key_t* keys, size_t count,
                       void* const* addresses, const uint64_t* sizes, size_t pieces,
                       int32_t* results);
/* Removes entries from the shares of this host. Entries that a member is reading stay. */
int32_t memspan_kv_remove(smem_bm_t pool, const memspan_kv_key_t* keys, size_t count,
                          size_t* removed);

typedef struct {
  /* Counts of this process, since memspan_kv_start(). */
  uint64_t looked_up; /* keys */
  uint64_t found;     /* of these */
  uint64_t got;       /* entries */
  uint64_t got_bytes;
  uint64_t got_remote; /* of them from other hosts */
  uint64_t missed;     /* gets of missing (or evicted) entries */
  uint64_t put;        /* entries */
  uint64_t put_bytes;
  uint64_t present; /* puts of present entries */
  uint64_t no_room; /* puts */
  uint64_t evicted; /* entries, for this process's puts */
  /* State of the shares on this host, now. */
  uint64_t shares;
  uint64_t capacity; /* bytes */
  uint64_t slots;    /* of the sizes that came so far */
  uint64_t entries;
  uint64_t entry_bytes;
} memspan_kv_stats_t;

int32_t memspan_kv_stats(smem_bm_t pool, memspan_kv_stats_t* stats);

#ifdef __cplusplus
}
#endif

#endif /* MEMSPAN_KV_POOL_H */
