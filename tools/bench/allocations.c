/* Counts what a process has allocated, for tools/bench/memory.py: preloaded, it stands before malloc and mmap. SIGUSR1
 * sets the peak to what is allocated now; each signal writes "allocated PEAK" in bytes to the file descriptor that
 * ALLOCATIONS_FD names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static atomic_long live, peak;

static void add(long bytes) {
  long now = atomic_fetch_add(&live, bytes) + bytes, most = atomic_load(&peak);
  while (now > most && !atomic_compare_exchange_weak(&peak, &most, now))
    ;
}
static void *counted(void *memory) {
  if (memory)
    add((long)malloc_usable_size(memory));
  return memory;
}

void *malloc(size_t bytes) { return counted(__libc_malloc(bytes)); }
void *calloc(size_t count, size_t bytes) { return counted(__libc_calloc(count, bytes)); }
void *memalign(size_t alignment, size_t bytes) { return counted(__libc_memalign(alignment, bytes)); }
void *aligned_alloc(size_t alignment, size_t bytes) { return counted(__libc_memalign(alignment, bytes)); }
int posix_memalign(void **out, size_t alignment, size_t bytes) {
  void *memory = counted(__libc_memalign(alignment, bytes));
  if (!memory)
    return ENOMEM;
  *out = memory;
  return 0;
}
void *realloc(void *memory, size_t bytes) {
  long before = memory ? (long)malloc_usable_size(memory) : 0;
  void *now = __libc_realloc(memory, bytes);
  if (now || !bytes)
    add((now ? (long)malloc_usable_size(now) : 0) - before);
  return now;
}
void free(void *memory) {
  if (memory)
    add(-(long)malloc_usable_size(memory));
  __libc_free(memory);
}

/* Of mappings only those count that hold data of the program, not files. */
void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
  static void *(*next)(void *, size_t, int, int, int, off_t);
  if (!next)
    next = (void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
  void *memory = next(at, bytes, protection, flags, file, offset);
  if (memory != MAP_FAILED && (flags & MAP_ANONYMOUS) && (protection & PROT_WRITE))
    add((long)bytes);
  return memory;
}
int munmap(void *memory, size_t bytes) {
  static int (*next)(void *, size_t);
  if (!next)
    next = (int (*)(void *, size_t))dlsym(RTLD_NEXT, "munmap");
  return next(memory, bytes);
}

static void report(int signal) {
  const char *file = getenv("ALLOCATIONS_FD");
  char text[64];
  int length = snprintf(text, sizeof text, "%ld %ld\n", atomic_load(&live), atomic_load(&peak));
  if (file && write(atoi(file), text, (size_t)length) < 0)
    abort();
  if (signal == SIGUSR1)
    atomic_store(&peak, atomic_load(&live));
}

__attribute__((constructor)) static void start(void) {
  signal(SIGUSR1, report);
  signal(SIGUSR2, report);
}
