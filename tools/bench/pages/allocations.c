/* A library for LD_PRELOAD that measures what a process allocates. At exit it writes the largest number of bytes that
 * were allocated at one time, as the allocator counts them, to the file ALLOCATIONS_LOG. allocations_mark() starts
 * anew: what is allocated then does not count. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static atomic_long live, peak, mark;

static void *counted(void *memory) {
  if (!memory)
    return memory;
  const long now = atomic_fetch_add(&live, (long)malloc_usable_size(memory)) + (long)malloc_usable_size(memory);
  for (long most = atomic_load(&peak); now > most && !atomic_compare_exchange_weak(&peak, &most, now);)
    ;
  return memory;
}

static void discount(void *memory) {
  if (memory)
    atomic_fetch_sub(&live, (long)malloc_usable_size(memory));
}

void *malloc(size_t bytes) { return counted(__libc_malloc(bytes)); }
void *calloc(size_t count, size_t bytes) { return counted(__libc_calloc(count, bytes)); }
void *memalign(size_t alignment, size_t bytes) { return counted(__libc_memalign(alignment, bytes)); }
void *aligned_alloc(size_t alignment, size_t bytes) { return counted(__libc_memalign(alignment, bytes)); }
int posix_memalign(void **memory, size_t alignment, size_t bytes) {
  *memory = counted(__libc_memalign(alignment, bytes));
  return *memory ? 0 : ENOMEM;
}
void *realloc(void *memory, size_t bytes) {
  const long before = memory ? (long)malloc_usable_size(memory) : 0;
  void *made = __libc_realloc(memory, bytes);
  if (made || !bytes)
    atomic_fetch_sub(&live, before);
  return counted(made);
}
void free(void *memory) {
  discount(memory);
  __libc_free(memory);
}

void allocations_mark(void) {
  atomic_store(&mark, atomic_load(&live));
  atomic_store(&peak, atomic_load(&live));
}

__attribute__((destructor)) static void report(void) {
  const char *path = getenv("ALLOCATIONS_LOG");
  FILE *file = path ? fopen(path, "w") : NULL;
  if (file) {
    fprintf(file, "%ld\n", atomic_load(&peak) - atomic_load(&mark));
    fclose(file);
  }
}
