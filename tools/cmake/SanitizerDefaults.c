// Linked into every executable of a sanitizer build: the options that make Debian's uninstrumented LLVM and MLIR
// libraries get along with our instrumented code. The environment (ASAN_OPTIONS, …) overrides them.

// LLVM's inline allocators poison what they have not handed out yet; the library's own copies never unpoison it.
// No memory is an answer that the runtime handles, not the end. LLVM gives threads a signal stack of its own, which
// AddressSanitizer would take for the one it made.
const char *__asan_default_options(void) {
  return "allow_user_poisoning=0:allocator_may_return_null=1:use_sigaltstack=0";
}

// Atomics inside the libraries are invisible: what their locks protect would look like a race.
const char *__tsan_default_options(void) { return "ignore_noninstrumented_modules=1:allocator_may_return_null=1"; }

const char *__ubsan_default_options(void) { return "print_stacktrace=1"; }
