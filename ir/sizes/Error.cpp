#include "burin/error.h"

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

} // namespace burin
