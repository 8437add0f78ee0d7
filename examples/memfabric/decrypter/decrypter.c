/* SPDX-License-Identifier: Apache-2.0
 * A library that opens key passwords: smem_tls_config names it in decrypterLibPath, and it exports
 * DecryptPassword. This one reads the text backwards, which protects nothing; a real one asks a
 * vault or a key store of the operating system. */
#include <stddef.h>
#include <string.h>

/* plainText has room for plainTextLen bytes; 0 when the password is there, with its final zero. */
__attribute__((visibility("default"))) int DecryptPassword(const char* cipherText,
                                                           size_t cipherTextLen, char* plainText,
                                                           size_t plainTextLen) {
  if (cipherText == NULL || plainText == NULL) return -1;
  while (cipherTextLen > 0 && strchr("\r\n", cipherText[cipherTextLen - 1]) != NULL)
    --cipherTextLen; /* the end of the file's line */
  if (cipherTextLen >= plainTextLen) return -1;
  for (size_t i = 0; i < cipherTextLen; ++i) plainText[i] = cipherText[cipherTextLen - 1 - i];
  plainText[cipherTextLen] = '\0';
  return 0;
}
