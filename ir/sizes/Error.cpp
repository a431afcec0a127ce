#include "burin/error.h"
#include "ir/sizes/ErrorContext.h"
#include <atomic>

namespace burin {

static std::atomic<detail::ErrorContext> errorContext;
void detail::setErrorContext(ErrorContext context) { errorContext = context; }

std::string Location::str() const { return line ? std::string(file) + ":" + std::to_string(line) : file; }

static std::string compose(const Location &where, std::string_view op, std::string_view message) {
  std::string text = where.str();
  if (!text.empty())
    text += ": ";
  if (!op.empty())
    text.append(op).append(": ");
  text.append(message);
  if (detail::ErrorContext context = errorContext)
    if (const std::string more = context(); !more.empty())
      text.append("\n  ").append(more);
  return text;
}

Error::Error(const Location &where, std::string_view op, std::string_view message)
    : std::runtime_error(compose(where, op, message)), place(where) {}
Error::~Error() = default;

} // namespace burin
