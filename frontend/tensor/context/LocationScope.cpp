#include "frontend/tensor/context/LocationScope.h"
#include <mutex>
#include <set>

namespace burin {

static thread_local const Location *scope = nullptr;

Location &detail::lastSizes() {
  static thread_local Location last;
  return last;
}

LocationScope::LocationScope(const Location &where) : outer(scope), place(where) { scope = &place; }
LocationScope::~LocationScope() { scope = outer; }

namespace detail {
// NOLINTNEXTLINE(bugprone-return-const-ref-from-parameter): callers pass a parameter or variable of their own
const Location &inScope(const Location &where) { return scope ? *scope : where; }

const char *keepText(std::string text) {
  static std::mutex mutex;
  static std::set<std::string> kept;
  std::lock_guard lock(mutex);
  return kept.insert(std::move(text)).first->c_str();
}
} // namespace detail

} // namespace burin
