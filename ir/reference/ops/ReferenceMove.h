// Ops that only move elements, for any element width: the reference interpreter runs them on its 8-byte elements,
// constant folding on the bytes of constants.
#pragma once
#include "ir/infer/OpInfo.h"
#include "ir/reference/ElementMove.h"

namespace burin::ir {

struct MoveTensor {
  char *data; // read-only for operands
  std::vector<int64_t> shape;
};

struct MoveCall {
  const OpInfo &info;
  const std::vector<Attr> &attrs; // in the order of info.attrs; shapes are static
  std::vector<MoveTensor> operands;
  std::vector<MoveTensor> results; // zeroed by the caller
  size_t width;                    // bytes of an element: 1, 2, 4 or 8
  const char *fill;                // the padding value as an element
  std::string error;

  template <class T> const T &attr(std::string_view name) const {
    for (size_t i = 0; i < info.attrs.size(); ++i)
      if (name == info.attrs[i].name)
        return std::get<T>(attrs[i]);
    std::abort(); // the table and the kernel disagree
  }
  bool fail(std::string message) {
    error = std::move(message);
    return false;
  }
};

/// Fills the results, or sets `error` and returns false.
using MoveKernel = bool (*)(MoveCall &);
/// nullptr if the op does not only move elements.
MoveKernel findMoveKernel(std::string_view op);

} // namespace burin::ir
