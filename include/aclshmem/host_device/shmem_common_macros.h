/* SPDX-License-Identifier: Apache-2.0
 *
 * CANN SHMEM: the lists by which its headers declare a function for each type.
 */
#ifndef MEMSPAN_ACLSHMEM_COMMON_MACROS_H
#define MEMSPAN_ACLSHMEM_COMMON_MACROS_H

/* FUNC(bits): the sizes of elements without a type. */
#define ACLSHMEM_SIZE_FUNC(FUNC) \
  FUNC(8);                       \
  FUNC(16);                      \
  FUNC(32);                      \
  FUNC(64);                      \
  FUNC(128)

/* FUNC(name, type): the types of waits and tests. */
#define ACLSHMEM_P2P_SYNC_TYPE_FUNC(FUNC) \
  FUNC(float, float);                     \
  FUNC(int8, int8_t);                     \
  FUNC(int16, int16_t);                   \
  FUNC(int32, int32_t);                   \
  FUNC(int64, int64_t);                   \
  FUNC(uint8, uint8_t);                   \
  FUNC(uint16, uint16_t);                 \
  FUNC(uint32, uint32_t);                 \
  FUNC(uint64, uint64_t);                 \
  FUNC(char, char)

#ifdef __cplusplus
#define MEMSPAN_ACLSHMEM_BEGIN extern "C" {
#define MEMSPAN_ACLSHMEM_END }
/* In C++ the last parameters have values that are good as they are. */
#define MEMSPAN_ACLSHMEM_DEFAULT(...) = __VA_ARGS__
#else
#define MEMSPAN_ACLSHMEM_BEGIN
#define MEMSPAN_ACLSHMEM_END
#define MEMSPAN_ACLSHMEM_DEFAULT(...)
#endif

#endif
