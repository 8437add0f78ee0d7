// SPDX-License-Identifier: Apache-2.0
#include "callbacks.h"

#include <nanobind/stl/string.h>
#include <shmem_api.h>

#include <cstring>
#include <string>

namespace memspan::python {
namespace {

Callback decrypter;
Callback logger;

// `function(cipher) -> str`.
int decrypt(const char* cipher, std::size_t bytes, char* plain, std::size_t& room) {
  if (!Py_IsInitialized()) return -1;
  const nb::gil_scoped_acquire held;
  const nb::object answer =
      call_back(decrypter.get(), "the decrypt handler", nb::str(cipher, bytes));
  std::string text;
  if (!answer.is_valid() || !nb::try_cast(answer, text) || text.size() >= room) return -1;
  std::memcpy(plain, text.c_str(), text.size() + 1);
  room = text.size();
  return 0;
}

void log(int level, const char* message) {
  if (!Py_IsInitialized()) return;
  const nb::gil_scoped_acquire held;
  call_back(logger.get(), "the logger", level, message);
}

}  // namespace

DecryptHandler set_decrypter(nb::handle function) {
  decrypter.set(function);
  return function.is_none() ? nullptr : decrypt;
}

void drop_callbacks() {
  {
    const nb::gil_scoped_release released;  // one that is running may want it
    shmem_set_extern_logger(nullptr);
    shmem_register_decrypt_handler(nullptr);
  }
  logger.set(nb::none());
  decrypter.set(nb::none());
}

LogFunction set_logger(nb::handle function) {
  logger.set(function);
  return function.is_none() ? nullptr : log;
}

}  // namespace memspan::python
