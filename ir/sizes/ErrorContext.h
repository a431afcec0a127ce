// Context of errors, which they append to their messages.
#pragma once
#include "burin/error.h"
#include <string>

namespace burin::detail {
/// Describes the current position of the calling thread, such as the module; empty if there is none. Null: no context.
using ErrorContext = std::string (*)();
void setErrorContext(ErrorContext context);

/// An error of an earlier call: with the context of that call, or none, instead of that of the calling thread.
Error errorIn(const std::string &context, const Location &where, std::string_view op, std::string_view message);
} // namespace burin::detail
