#include "burin/error.h"
#include "frontend/tensor/LocationScope.h"
#include <mutex>
#include <set>

namespace burin {

std::string Location::str() const { return line ? std::string(file) + ":" + std::to_string(line) : file; }

static std::string compose(const Location &where, std::string_view op, std::string_view message) {
  std::string text = where.str();
  if (!text.empty())
    text += ": ";
  if (!op.empty())
    text.append(op).append(": ");
  return text.append(message);
}

Error::Error(const Location &where, std::string_view op, std::string_view message)
    : std::runtime_error(compose(where, op, message)), place(where) {}
Error::~Error() = default;

static thread_local const Location *scope = nullptr;

LocationScope::LocationScope(const Location &where) : outer(scope), place(where) { scope = &place; }
LocationScope::~LocationScope() { scope = outer; }

namespace detail {
const Location &inScope(const Location &where) { return scope ? *scope : where; }

const char *keepText(std::string text) {
  static std::mutex mutex;
  static std::set<std::string> kept;
  std::lock_guard lock(mutex);
  return kept.insert(std::move(text)).first->c_str();
}
} // namespace detail

} // namespace burin
