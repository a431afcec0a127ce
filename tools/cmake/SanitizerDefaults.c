// Default options for every executable of a sanitizer build, needed because Debian's LLVM and MLIR libraries are not
// instrumented. The environment (ASAN_OPTIONS, …) overrides them.

// allow_user_poisoning=0: LLVM's allocators, inlined into instrumented code, poison memory that they have not handed
// out, but the copies inside the uninstrumented library do not unpoison it. allocator_may_return_null=1: the runtime
// handles failed allocations. use_sigaltstack=0: LLVM gives its threads an alternate signal stack, which
// AddressSanitizer would take for its own and free.
const char *__asan_default_options(void) {
  return "allow_user_poisoning=0:allocator_may_return_null=1:use_sigaltstack=0";
}

// Atomics inside the uninstrumented libraries are invisible to ThreadSanitizer: accesses that they order would be
// reported as races.
const char *__tsan_default_options(void) { return "ignore_noninstrumented_modules=1:allocator_may_return_null=1"; }

const char *__ubsan_default_options(void) { return "print_stacktrace=1"; }
