// SPDX-License-Identifier: Apache-2.0
#include "kernels/source.h"

#include <gtest/gtest.h>

#include <string>

namespace memspan {
namespace {

constexpr const char* kOn = " ->* ::memspan::device::on(";
std::string cast(const std::string& type) {
  return "::memspan::device::UbCast<" + type + ">{}->*";
}

TEST(KernelSource, WhatIsCxxStaysAsItIs) {
  for (const char* const text :
       {"", "\n", "int a = b << 3 >> 1;", "a<b<c<int>>> x(1);", "auto s = \"k<<<1, 2, 3>>>(a)\";",
        "char c = '\\'', d = '\"'; f<<1;", "R\"x(k<<<1,2,3>>>(a) __ubuf__ )x\"",
        "# 1 \"a<<<b>>>(c).h\" 1 3\nint a;", "std::ostream& operator<<<char>(int);",
        "x = (int*)(32) + 1;", "if (a < b) c = d > e;", "1'000'000", "\"open", "k<<<1, 2, 3;"})
    EXPECT_EQ(to_cxx(text), text);
}

TEST(KernelSource, LaunchesAreCalls) {
  EXPECT_EQ(to_cxx("k<<<n, nullptr, s>>>(a, b);"),
            std::string("k") + kOn + "n, nullptr, s)(a, b);");
  EXPECT_EQ(to_cxx("ns::k<T, 3><<<f(1, 2), 0, q[1]>>> (a)"),
            std::string("ns::k<T, 3>") + kOn + "f(1, 2), 0, q[1]) (a)");
  EXPECT_EQ(to_cxx("k<<<1, v<w<int>>::x, s>>>()"),
            std::string("k") + kOn + "1, v<w<int>>::x, s)()");
  EXPECT_EQ(to_cxx("k<<<1,\n0,\ns>>>\n(a)"), std::string("k") + kOn + "1,\n0,\ns)\n(a)");
  EXPECT_EQ(to_cxx("a<<<1, 0, s>>>(); b<<<2, 0, s>>>();"),
            std::string("a") + kOn + "1, 0, s)(); b" + kOn + "2, 0, s)();");
}

TEST(KernelSource, CastsToTheBuffer) {
  EXPECT_EQ(to_cxx("p = (__ubuf__ T*)(64);"), "p = " + cast(" T*") + "(64);");
  EXPECT_EQ(to_cxx("(__ubuf__ uint8_t *)b.GetPhyAddr()"), cast(" uint8_t *") + "b.GetPhyAddr()");
  EXPECT_EQ(to_cxx("*(__ubuf__ int*)(x) = 1"), "*" + cast(" int*") + "(x) = 1");
  EXPECT_EQ(to_cxx("reinterpret_cast<__ubuf__ T*>(0)"), "::memspan::device::ub_cast< T*>(0)");
  EXPECT_EQ(to_cxx("reinterpret_cast<__gm__ v<T>*>(a)"), "reinterpret_cast<__gm__ v<T>*>(a)");
}

TEST(KernelSource, TheBuffersWordIsNothingElsewhere) {
  EXPECT_EQ(to_cxx("void f(__ubuf__ T* a, __ubuf__ U*);"), "void f( T* a,  U*);");
  EXPECT_EQ(to_cxx("using F = void (*)(__ubuf__ T*);"), "using F = void (*)( T*);");
  EXPECT_EQ(to_cxx("__ubuf__ int* a[16];"), " int* a[16];");
  EXPECT_EQ(to_cxx("sizeof(__ubuf__ T*) * 2"), "sizeof( T*) * 2");
  EXPECT_EQ(to_cxx("inline attribute((always_inline)) int f();"),
            "inline __attribute__((always_inline)) int f();");
}

}  // namespace
}  // namespace memspan
