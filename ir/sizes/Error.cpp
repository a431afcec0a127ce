#include "burin/error.h"
#include "ir/sizes/ErrorContext.h"
#include <atomic>

namespace burin {

static std::atomic<detail::ErrorContext> errorContext;
static thread_local const std::string *givenContext = nullptr;
void detail::setErrorContext(ErrorContext context) { errorContext = context; }

Error detail::errorIn(const std::string &context, const Location &where, std::string_view op,
                      std::string_view message) {
  givenContext = &context;
  Error error(where, op, message);
  givenContext = nullptr;
  return error;
}

std::string Location::str() const { return line ? std::string(file) + ":" + std::to_string(line) : file; }

static std::string compose(const Location &where, std::string_view op, std::string_view message) {
  std::string text = where.str();
  if (!text.empty())
    text += ": ";
  if (!op.empty())
    text.append(op).append(": ");
  text.append(message);
  detail::ErrorContext context = errorContext;
  if (const std::string more = givenContext ? *givenContext : context ? context() : ""; !more.empty())
    text.append("\n  ").append(more);
  return text;
}

Error::Error(const Location &where, std::string_view op, std::string_view message)
    : std::runtime_error(compose(where, op, message)), place(where) {}
Error::~Error() = default;

} // namespace burin
