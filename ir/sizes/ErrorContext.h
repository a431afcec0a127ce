// What errors add to their messages.
#pragma once
#include <string>

namespace burin::detail {
/// Tells where the calling thread is, such as in which module; empty if it is nowhere in particular. Null: nobody
/// tells.
using ErrorContext = std::string (*)();
void setErrorContext(ErrorContext context);
} // namespace burin::detail
