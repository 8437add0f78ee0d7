// SPDX-License-Identifier: Apache-2.0
// The parts of Asio that the store uses, with the same settings everywhere: the standalone library,
// without typeid because we compile without RTTI.
#pragma once

#ifndef ASIO_STANDALONE
#define ASIO_STANDALONE 1
#endif
#ifndef ASIO_NO_TYPEID
#define ASIO_NO_TYPEID 1
#endif

// Asio's fences only add to the locks that every hand-over between threads takes anyway, and the
// thread sanitizer does not understand fences.
#include "core/thread_sanitizer.h"
#ifdef MEMSPAN_THREAD_SANITIZER_
#define ASIO_DISABLE_FENCED_BLOCK 1
#endif

#include <asio/buffer.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/generic/stream_protocol.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/write.hpp>
