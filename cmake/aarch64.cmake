# SPDX-License-Identifier: Apache-2.0
# Cross-building for aarch64 with Debian's compiler and its arm64 packages (scripts/install_deps.sh
# --cross). What is built runs under QEMU's user mode.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
# Or pkg-config would name the host's libraries.
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
# Not with scikit-build-core: CMake would look at this machine's Python through it.
if(NOT SKBUILD)
  set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
endif()
