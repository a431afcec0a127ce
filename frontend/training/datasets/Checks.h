// Checks of the arguments of data sets.
#pragma once
#include "burin/error.h"
#include <string>

namespace burin::data {

/// Throws unless `index` is one of `size` examples. `where` is the line that made the set, because Dataset::get and
/// Dataset::batch do not know their caller's.
inline void requireExample(int64_t index, int64_t size, const char *op, const Location &where) {
  if (index < 0 || index >= size)
    throw Error(where, op,
                "there is no example " + std::to_string(index) + " in this set: it has " + std::to_string(size) +
                    ", from 0 on");
}

} // namespace burin::data
