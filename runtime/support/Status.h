// Errors of the runtime are values, never exceptions. Success is a null pointer.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace burin::rt {

/// Kinds of errors. The values are part of the C ABI: append, never renumber.
enum class ErrorCode : uint32_t {
  InvalidArgument = 1, // in the call: a shape, a dtype, a null pointer
  BadArtifact = 2,     // the file is not a complete, valid artifact of this format version
  Unsupported = 3,     // a valid artifact that this machine cannot run
  Io = 4,              // error of the operating system
  OutOfMemory = 5,
  Busy = 6, // the session is already running
  Internal = 7,
  Data = 8 // an invalid value at run time: an index out of range
};

class [[nodiscard]] Status {
  struct Detail {
    ErrorCode code;
    std::string message;
  };
  std::unique_ptr<Detail> detail;

public:
  Status() = default;
  Status(ErrorCode code, std::string message) : detail(new Detail{code, std::move(message)}) {}

  bool ok() const { return !detail; }
  explicit operator bool() const = delete; // use ok(): null means success, which reads the wrong way round
  ErrorCode code() const { return detail ? detail->code : ErrorCode{}; }
  const std::string &message() const {
    static const std::string none;
    return detail ? detail->message : none;
  }
};

} // namespace burin::rt
