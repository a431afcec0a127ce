// Source location that errors and traces show for calls in library code.
#pragma once
#include "burin/error.h"

namespace burin {

/// During its lifetime, ops that this thread calls have its location instead of their own: for library code that
/// reports its callers' lines, and for importers that name the nodes of a file.
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
