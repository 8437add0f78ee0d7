/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiles where an interpreter's headers fit another processor: pyconfig.h was made on this one,
 * and what it says of types is compared with what the compiler knows. The rest of it is about the C
 * library and the system, which are glibc and Linux for both. */
#include <Python.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>
#include <wchar.h>

#define FITS(name, type) \
  _Static_assert(SIZEOF_##name == sizeof(type), "pyconfig.h has another size of " #type)
FITS(SHORT, short);
FITS(INT, int);
FITS(LONG, long);
FITS(LONG_LONG, long long);
FITS(FLOAT, float);
FITS(DOUBLE, double);
FITS(LONG_DOUBLE, long double);
FITS(_BOOL, _Bool);
FITS(VOID_P, void*);
FITS(SIZE_T, size_t);
FITS(UINTPTR_T, uintptr_t);
FITS(OFF_T, off_t);
FITS(FPOS_T, fpos_t);
FITS(PID_T, pid_t);
FITS(TIME_T, time_t);
FITS(WCHAR_T, wchar_t);
FITS(PTHREAD_T, pthread_t);
FITS(PTHREAD_KEY_T, pthread_key_t);
#ifdef WORDS_BIGENDIAN
_Static_assert(__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__, "pyconfig.h has another order of bytes");
#else
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "pyconfig.h has another order of bytes");
#endif
