// Shared by the tests of the frontend.
#pragma once
#include <burin/burin.h>
#include <catch2/catch.hpp>

using namespace burin;

/// Returns the text of the Error that `code` throws, or "" if it throws none.
template <class F> std::string messageOf(F &&code) {
  try {
    code();
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

/// Returns ":<line>: " of this file; messages begin so after the path.
inline std::string atLine(const char *file, int line) { return std::string(file) + ":" + std::to_string(line) + ": "; }

inline bool contains(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }
inline size_t lines(const std::string &text) { return size_t(std::count(text.begin(), text.end(), '\n')) + 1; }

/// Checks that `code` throws an Error that names this line and contains all the given parts, in at most six lines.
#define CHECK_ERROR(code, ...)                                                                                         \
  do {                                                                                                                 \
    std::string what = messageOf([&] { code; });                                                                       \
    INFO(what);                                                                                                        \
    CHECK(contains(what, atLine(__FILE__, __LINE__)));                                                                 \
    CHECK(lines(what) <= 6);                                                                                           \
    for (const char *part : {__VA_ARGS__})                                                                             \
      CHECK(contains(what, part));                                                                                     \
  } while (false)

template <class T> std::vector<T> values(const Tensor &x) { return x.to_vector<T>(); }
inline std::vector<float> floats(const Tensor &x) { return x.to_vector<float>(); }
inline std::vector<int64_t> ints(const Tensor &x) { return x.to_vector<int64_t>(); }
inline double largestDifference(const Tensor &a, const Tensor &b) { return (a - b).abs().max().item(); }
