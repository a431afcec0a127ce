// Context of errors, which they append to their messages.
#pragma once
#include <string>

namespace burin::detail {
/// Describes the current position of the calling thread, such as the module; empty if there is none. Null: no context.
using ErrorContext = std::string (*)();
void setErrorContext(ErrorContext context);
} // namespace burin::detail
