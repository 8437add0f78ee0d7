/* SPDX-License-Identifier: Apache-2.0
 *
 * Transfers between named endpoints, each of which has registered memory of its process. C99 or
 * C++11. Names, arguments and values are MemFabric's; what goes beyond them is in
 * <memspan/transfer.h>.
 *
 * An endpoint's name is "ip:port", "[ipv6]:port" or "host:port"; it is only a name: nothing listens
 * there, and no name server is asked. A transfer issued after the peer's registration returned
 * works at once, and one that returned is complete: the bytes are in the peer's memory. Pieces may
 * begin and end anywhere within what the peer registered, to the byte. Thread-safe, but for
 * config_init. Functions that return a code return SMEM_OK or what is wrong, and
 * smem_get_last_err_msg() says it in a sentence: SMEM_NOT_EXIST for a peer that is unknown or an
 * address that it has not registered, SMEM_NOT_CONNECTED for one that died, SMEM_INVALID_PARAM for
 * bad arguments, which are looked at first, SMEM_NOT_INIT before smem_trans_init(), and then
 * SMEM_INVALID_PARAM again for a handle that names no endpoint. Every call that waits ends. A child
 * of fork() has no endpoints.
 */
#ifndef MEMSPAN_SMEM_TRANS_H
#define MEMSPAN_SMEM_TRANS_H

#include "smem.h"
#include "smem_trans_def.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A sender, 120 s, SDMA; hosts no store. */
int32_t smem_trans_config_init(smem_trans_config_t* config);
/* Comes before smem_trans_create(); checks the configuration. Called again it is SMEM_OK. */
int32_t smem_trans_init(const smem_trans_config_t* config);
/* Destroys what is left; smem_trans_init() is needed again then. */
void smem_trans_uninit(uint32_t flags);

/* An endpoint with that name at the store, connecting for up to initTimeout seconds. Senders and
 * receivers reach endpoints of the other role or of both. NULL with the reason kept: SMEM_NOT_INIT
 * before smem_trans_init(), SMEM_DUPLICATED when a living process has the name, also this one. */
smem_trans_t smem_trans_create(const char* storeUrl, const char* uniqueId,
                               const smem_trans_config_t* config);
/* Takes everything back that it registered and ends what it has under way. */
void smem_trans_destroy(smem_trans_t handle, uint32_t flags);

/* Memory of the host that is registered and that peers on the same host map, which is the fastest
 * kind; bytes, of any number but 0, on a page. NULL with the reason kept. Owned by the endpoint.
 * Memory of a device: memspan_transfer_device_malloc(). */
void* smem_trans_malloc(smem_trans_t handle, size_t capacity);
/* SMEM_INVALID_PARAM when `address` is not the beginning of such memory. */
int32_t smem_trans_free(smem_trans_t handle, void* address);

/* Lets peers read and write [address, address + capacity). It is neither touched nor pinned. The
 * same range again counts once more; overlapping ones are separate, and a piece must be inside one
 * of them. The memory must stay valid until it is deregistered. */
int32_t smem_trans_register_mem(smem_trans_t handle, void* address, size_t capacity,
                                uint32_t flags);
/* All or none. Neighbours and overlaps are joined, so that a piece may span them. */
int32_t smem_trans_batch_register_mem(smem_trans_t handle, void* addresses[], size_t capacities[],
                                      uint32_t count, uint32_t flags);
/* Takes back what was registered with this beginning; a peer's transfer that begins after it
 * returned is refused. SMEM_OK also when nothing is registered there. */
int32_t smem_trans_deregister_mem(smem_trans_t handle, void* address);

/* localAddr to remoteAddr of the peer, or back; bytes. The batches have batchSize elements, and
 * on failure the text names the first that failed; earlier ones were moved. If the peer runs and
 * has not registered the address, an endpoint that has registered something itself waits up to 8 s
 * for it (MEMSPAN_TRANS_WAIT, seconds; 0: none); after a wait in vain the next transfer to that
 * peer fails at once, until this endpoint registers again. */
int32_t smem_trans_write(smem_trans_t handle, const void* localAddr, const char* remoteUniqueId,
                         void* remoteAddr, size_t dataSize);
int32_t smem_trans_batch_write(smem_trans_t handle, const void* localAddrs[],
                               const char* remoteUniqueId, void* remoteAddrs[], size_t dataSizes[],
                               uint32_t batchSize);
int32_t smem_trans_read(smem_trans_t handle, void* localAddr, const char* remoteUniqueId,
                        const void* remoteAddr, size_t dataSize);
int32_t smem_trans_batch_read(smem_trans_t handle, void* localAddrs[], const char* remoteUniqueId,
                              const void* remoteAddrs[], size_t dataSizes[], uint32_t batchSize);

/* The same, done by a stream (memspan/stream.h) after what was given to it before; checked at once,
 * the arrays are free on return, and what fails later is what the stream's synchronisation says.
 * With MEMSPAN_DEVICE=cuda the stream may be a cudaStream_t: then what the peer has not registered
 * is refused at once, and what fails later is logged. */
int32_t smem_trans_read_submit(smem_trans_t handle, void* localAddr, const char* remoteUniqueId,
                               const void* remoteAddr, size_t dataSize, void* stream);
int32_t smem_trans_write_submit(smem_trans_t handle, const void* localAddr,
                                const char* remoteUniqueId, void* remoteAddr, size_t dataSize,
                                void* stream);
int32_t smem_trans_batch_read_submit(smem_trans_t handle, void* localAddrs[],
                                     const char* remoteUniqueId, const void* remoteAddrs[],
                                     size_t dataSizes[], uint32_t batchSize, void* stream);
int32_t smem_trans_batch_write_submit(smem_trans_t handle, const void* localAddrs[],
                                      const char* remoteUniqueId, void* remoteAddrs[],
                                      size_t dataSizes[], uint32_t batchSize, void* stream);

/* `down` is called once for each life of a peer that this endpoint moved something to or from, when
 * that peer has died or has been destroyed; on a thread of the endpoint, which it must not destroy.
 * NULL: none; the one before does not run any more when this returns. */
typedef void (*smem_trans_peer_down_callback_t)(const char* peerUniqueId, void* userData);
int32_t smem_trans_set_peer_down_callback(smem_trans_t handle, smem_trans_peer_down_callback_t down,
                                          void* userData);

/* SMEM_OK for the flags that transfers may have (0 and COPY_EXTEND_FLAG), else "invalid flags". The
 * symbols above read no flags, so that callers of either generation may use them. */
int32_t smem_trans_check_flags(uint32_t flags);

#ifdef __cplusplus
}

/* The forms with flags. */
inline int32_t smem_trans_write(smem_trans_t handle, const void* localAddr,
                                const char* remoteUniqueId, void* remoteAddr, size_t dataSize,
                                uint32_t flags) {
  const int32_t code = smem_trans_check_flags(flags);
  return code != SMEM_OK
             ? code
             : smem_trans_write(handle, localAddr, remoteUniqueId, remoteAddr, dataSize);
}
inline int32_t smem_trans_batch_write(smem_trans_t handle, const void* localAddrs[],
                                      const char* remoteUniqueId, void* remoteAddrs[],
                                      size_t dataSizes[], uint32_t batchSize, uint32_t flags) {
  const int32_t code = smem_trans_check_flags(flags);
  return code != SMEM_OK ? code
                         : smem_trans_batch_write(handle, localAddrs, remoteUniqueId, remoteAddrs,
                                                  dataSizes, batchSize);
}
inline int32_t smem_trans_read(smem_trans_t handle, void* localAddr, const char* remoteUniqueId,
                               const void* remoteAddr, size_t dataSize, uint32_t flags) {
  const int32_t code = smem_trans_check_flags(flags);
  return code != SMEM_OK ? code
                         : smem_trans_read(handle, localAddr, remoteUniqueId, remoteAddr, dataSize);
}
inline int32_t smem_trans_batch_read(smem_trans_t handle, void* localAddrs[],
                                     const char* remoteUniqueId, const void* remoteAddrs[],
                                     size_t dataSizes[], uint32_t batchSize, uint32_t flags) {
  const int32_t code = smem_trans_check_flags(flags);
  return code != SMEM_OK ? code
                         : smem_trans_batch_read(handle, localAddrs, remoteUniqueId, remoteAddrs,
                                                 dataSizes, batchSize);
}
inline int32_t smem_trans_read_submit(smem_trans_t handle, void* localAddr,
                                      const char* remoteUniqueId, const void* remoteAddr,
                                      size_t dataSize, void* stream, uint32_t flags) {
  const int32_t code = smem_trans_check_flags(flags);
  return code != SMEM_OK ? code
                         : smem_trans_read_submit(handle, localAddr, remoteUniqueId, remoteAddr,
                                                  dataSize, stream);
}
inline int32_t smem_trans_write_submit(smem_trans_t handle, const void* localAddr,
                                       const char* remoteUniqueId, void* remoteAddr,
                                       size_t dataSize, void* stream, uint32_t flags) {
  const int32_t code = smem_trans_check_flags(flags);
  return code != SMEM_OK ? code
                         : smem_trans_write_submit(handle, localAddr, remoteUniqueId, remoteAddr,
                                                   dataSize, stream);
}
inline int32_t smem_trans_batch_read_submit(smem_trans_t handle, void* localAddrs[],
                                            const char* remoteUniqueId, const void* remoteAddrs[],
                                            size_t dataSizes[], uint32_t batchSize, void* stream,
                                            uint32_t flags) {
  const int32_t code = smem_trans_check_flags(flags);
  return code != SMEM_OK ? code
                         : smem_trans_batch_read_submit(handle, localAddrs, remoteUniqueId,
                                                        remoteAddrs, dataSizes, batchSize, stream);
}
inline int32_t smem_trans_batch_write_submit(smem_trans_t handle, const void* localAddrs[],
                                             const char* remoteUniqueId, void* remoteAddrs[],
                                             size_t dataSizes[], uint32_t batchSize, void* stream,
                                             uint32_t flags) {
  const int32_t code = smem_trans_check_flags(flags);
  return code != SMEM_OK ? code
                         : smem_trans_batch_write_submit(handle, localAddrs, remoteUniqueId,
                                                         remoteAddrs, dataSizes, batchSize, stream);
}
#endif

#endif /* MEMSPAN_SMEM_TRANS_H */
