/* SPDX-License-Identifier: Apache-2.0
 *
 * MemFabric, what its parts share: return codes, last error, log, the config store and how it is
 * protected. C99 or C++11. Names and values are those of MemFabric 1.0 and, for the codes, of its
 * later releases, which publish them.
 *
 * Every function here is thread-safe and local to this process. One that returns a code returns
 * SMEM_OK or what is wrong, and keeps a sentence about it for the calling thread.
 */
#ifndef MEMSPAN_SMEM_SMEM_H
#define MEMSPAN_SMEM_SMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Flags of copies. */
#define ASYNC_COPY_FLAG (1UL << 0)
#define COPY_EXTEND_FLAG (1UL << 1) /* a hint for one kind of hardware; without effect here */

#define SMEM_WORLD_SIZE_MAX 1024U
#define SMEM_INVALID_DEV_ID (-1)

#define SMEM_OK 0
#define SMEM_ERROR (-1)
#define SMEM_INVALID_PARAM (-2000)
#define SMEM_MALLOC_FAILED (-2001)
#define SMEM_NO_RESOURCES (-2002)
#define SMEM_NOT_STARTED (-2003)
#define SMEM_TIMEOUT (-2004)
#define SMEM_REPEAT_INVOKE (-2005)
#define SMEM_DUPLICATED (-2006)
#define SMEM_NOT_EXIST (-2007)
#define SMEM_NOT_INIT (-2008)
#define SMEM_RES_IN_USE (-2009)
#define SMEM_PARTIAL_FAILED (-2012)
#define SMEM_NOT_CONNECTED (-2014)

/* Turns a password as it is stored into the one that opens the key; 0 means that it could.
 * plainTextLen is the room for it before and its length after. */
#ifdef __cplusplus
typedef int (*smem_decrypt_handler)(const char* cipherText, size_t cipherTextLen, char* plainText,
                                    size_t& plainTextLen);
#else
typedef int (*smem_decrypt_handler)(const char* cipherText, size_t cipherTextLen, char* plainText,
                                    size_t* plainTextLen);
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Nothing needs these two; smem_init logs the version (level 1). `flags` is for later. */
int32_t smem_init(uint32_t flags);
void smem_uninit(void);

/* Hosts a config store in this process, for members that join with the same URL:
 * "tcp://a.b.c.d:port", "tcp://[v6]:port" or "tcp://host.name:port", with a port of 1 to 65535. It
 * serves until smem_destroy_config_store(), the last of smem_bm_uninit(), smem_shm_uninit() and
 * smem_trans_uninit() of what this process initialized, or its end; a child of fork() does not have
 * it. A URL that this process serves already is SMEM_OK; one that another socket has is
 * SMEM_RES_IN_USE. */
int32_t smem_create_config_store(const char* storeUrl);
/* Closes all connections to it. SMEM_NOT_EXIST when this process does not serve the URL. */
int32_t smem_destroy_config_store(const char* storeUrl);

/* How the stores and connections that are made from now on are protected; all are copied. Without
 * a call it is a secret: of MEMSPAN_JOB_SECRET_FILE, or one that only this user's processes on this
 * host can read. (false, NULL, 0) turns TLS off. (true, tls_info, length) asks for certificates,
 * which both sides show: "tlsCert: FILE; tlsCaPath: FOLDER; tlsCaFile: NAME, NAME; tlsPk: FILE;
 * tlsPkPwd: FILE; tlsCrlPath: FOLDER; tlsCrlFile: NAME". The key (at most 10 KiB of PEM) and its
 * password may be given as text instead, and the handler decrypts the password. */
int32_t smem_set_conf_store_tls(bool enable, const char* tls_info, const uint32_t tls_info_len);
int32_t smem_set_config_store_tls_key(const char* tls_pk, const uint32_t tls_pk_len,
                                      const char* tls_pk_pw, const uint32_t tls_pk_pw_len,
                                      const smem_decrypt_handler h);

/* `func` gets every line of the log instead of stderr, without its end; it may be called by any
 * thread and must not call the library. NULL is SMEM_INVALID_PARAM. */
int32_t smem_set_extern_logger(void (*func)(int level, const char* msg));
/* 0 debug, 1 info, 2 warn, 3 error, 4 fatal; what is below is dropped. Else SMEM_INVALID_PARAM. */
int32_t smem_set_log_level(int level);

/* Why this thread's last call that failed did so. Never NULL, empty before the first failure and
 * after the clearing form; valid until this thread's next failure. */
const char* smem_get_last_err_msg(void);
const char* smem_get_and_clear_last_err_msg(void);
/* Its code; SMEM_OK before the first failure and after the clearing form above. */
int32_t smem_get_last_err_code(void);
/* A short description of a code; never NULL, for any number. memspan's own. */
const char* smem_get_error_string(int32_t code);

#ifdef __cplusplus
}
#endif

#endif /* MEMSPAN_SMEM_SMEM_H */
