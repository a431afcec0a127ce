// Collects the problems of a call, so that they are reported together.
#pragma once
#include "runtime/support/Format.h"
#include "runtime/support/Status.h"

namespace burin::rt {

class ErrorList {
public:
  template <class... Parts> void add(const Parts &...parts) {
    if (++count > kShown)
      return;
    list += count == 1 ? "" : "\n  ";
    list += text(parts...);
  }
  bool any() const { return count > 0; }
  Status status(const char *prefix, ErrorCode code = ErrorCode::InvalidArgument) const {
    return {code, text(prefix, list, count > kShown ? text("\n  and ", count - kShown, " more problems") : "")};
  }

private:
  static constexpr int kShown = 5;
  int count = 0;
  std::string list;
};

} // namespace burin::rt
