// The subcommands of `burin`.
#pragma once
#include <CLI/CLI.hpp>

namespace burin::cli {

enum ExitCode { kOk = 0, kMismatch = 1, kUsage = 2, kBadModel = 3, kUnsupported = 4, kInternal = 5 };

/// Each adds its subcommand; when it was given, `exitCode` says how it went.
void addCompile(CLI::App &app, int &exitCode);

} // namespace burin::cli
