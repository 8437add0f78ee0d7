// SPDX-License-Identifier: Apache-2.0
#include "blas.h"

#include <cblas.h>
#include <dlfcn.h>

#if defined(MATMUL_HAVE_ONEDNN)
#include <dnnl.h>
#endif

namespace matmul {
namespace {

#if defined(MATMUL_HAVE_ONEDNN)
constexpr bool kHasOneDnn = true;
void onednn_multiply(const Product<float>& p) {
  dnnl_sgemm('N', 'N', p.rows, p.columns, p.depth, 1, p.a, p.a_stride, p.b, p.b_stride, p.beta, p.c,
             p.c_stride);
}
#else
constexpr bool kHasOneDnn = false;
void onednn_multiply(const Product<float>&) {}
#endif

bool is_onednn(Blas blas) {
  return kHasOneDnn && blas != Blas::kOpenBlas;
}

}  // namespace

bool has_onednn() {
  return kHasOneDnn;
}

const char* blas_name(Blas blas) {
  return is_onednn(blas) ? "oneDNN" : "OpenBLAS";
}

void use_one_blas_thread() {
  openblas_set_num_threads(1);
  // oneDNN runs on whichever OpenMP it was built with, which only the process knows.
  using SetThreads = void (*)(int);
  auto set_threads = reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (set_threads != nullptr) set_threads(1);
}

void multiply(Blas blas, const Product<float>& p) {
  if (is_onednn(blas)) return onednn_multiply(p);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, static_cast<blasint>(p.rows),
              static_cast<blasint>(p.columns), static_cast<blasint>(p.depth), 1, p.a,
              static_cast<blasint>(p.a_stride), p.b, static_cast<blasint>(p.b_stride), p.beta, p.c,
              static_cast<blasint>(p.c_stride));
}

void multiply(const Product<double>& p) {
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, static_cast<blasint>(p.rows),
              static_cast<blasint>(p.columns), static_cast<blasint>(p.depth), 1, p.a,
              static_cast<blasint>(p.a_stride), p.b, static_cast<blasint>(p.b_stride), p.beta, p.c,
              static_cast<blasint>(p.c_stride));
}

}  // namespace matmul
