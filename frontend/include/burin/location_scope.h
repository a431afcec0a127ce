// The place that errors and traces show for the calls of library code.
#pragma once
#include "burin/error.h"

namespace burin {

/// While one lives, the ops that this thread calls carry its place instead of their own: for library code whose callers
/// want to see their line, and for importers that number the nodes of a file.
class BURIN_API LocationScope {
public:
  explicit LocationScope(const Location &where);
  ~LocationScope();
  LocationScope(const LocationScope &) = delete;
  LocationScope &operator=(const LocationScope &) = delete;

private:
  const Location *outer;
  Location place;
};

} // namespace burin
