// The subcommands of `burin`, and how they report errors.
#pragma once
#include "codegen/Compiler.h"
#include <CLI/CLI.hpp>
#include <string>

namespace burin::cli {

enum ExitCode { kOk = 0, kMismatch = 1, kUsage = 2, kBadModel = 3, kUnsupported = 4, kInternal = 5 };

/// Prints "burin: error: " and the message to stderr, in colour on a terminal unless NO_COLOR is set. Returns `code`.
int fail(int code, const std::string &message);

/// Each adds its subcommand to `app`. When the subcommand runs, it sets `exitCode`.
void addCompile(CLI::App &app, int &exitCode);
void addInspect(CLI::App &app, int &exitCode);
void addRun(CLI::App &app, int &exitCode);
void addBench(CLI::App &app, int &exitCode);
void addMachine(CLI::App &app, int &exitCode);
void addEnv(CLI::App &app, int &exitCode);
/// `defaults` are the compile options that the options of the command line modify.
void addVerify(CLI::App &app, int &exitCode, const codegen::CompileOptions &defaults = {});
void addBisect(CLI::App &app, int &exitCode, const codegen::CompileOptions &defaults = {});

} // namespace burin::cli
