// The exception of the public API, and source locations of the user's program.
#pragma once
#include "burin/api.h"
#include <cstdint>
#include <source_location>
#include <stdexcept>
#include <string>

namespace burin {

/// A place in the user's program. Public functions take it as a defaulted last argument, so it is the caller's line.
/// `file` is never freed. Without a line number, `file` describes the place, for example a node of a model file.
struct Location {
  const char *file = "";
  uint32_t line = 0, column = 0;

  constexpr Location() = default;
  constexpr Location(const char *file, uint32_t line, uint32_t column = 0) : file(file), line(line), column(column) {}
  /// As a default argument: the line of the call.
  static constexpr Location current(std::source_location place = std::source_location::current()) {
    return {place.file_name(), place.line(), place.column()};
  }
  /// "model.cpp:12", "model.onnx:conv1", or "" if unknown.
  BURIN_API std::string str() const;
};

/// The one exception of the public API: what() names the caller's file:line, the op, the values, and a way out.
class BURIN_API Error : public std::runtime_error {
public:
  /// `op` may be empty.
  Error(const Location &where, std::string_view op, std::string_view message);
  explicit Error(const std::string &message, Location where = Location::current()) : Error(where, "", message) {}
  ~Error() override;
  const Location &where() const { return place; }

private:
  Location place;
};

} // namespace burin
