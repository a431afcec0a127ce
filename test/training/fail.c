/* A library for LD_PRELOAD that makes the N-th call that changes files below a folder fail, or write only half of its
 * data. Environment: FAIL_FOLDER; FAIL_AT, counted from 1; FAIL_ERROR, a value of errno, or 0 for a short write;
 * FAIL_LOG, a file to which the name of the failing call is written. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int calls;
static char watched[4096]; /* file descriptors of the folder */

static int isBelow(const char *path) {
  const char *folder = getenv("FAIL_FOLDER");
  return folder && path && strncmp(path, folder, strlen(folder)) == 0;
}

/* Returns whether this call must fail. */
static int fails(const char *name) {
  const char *at = getenv("FAIL_AT");
  if (!at || __sync_add_and_fetch(&calls, 1) != atoi(at))
    return 0;
  const char *log = getenv("FAIL_LOG");
  FILE *file = log ? fopen(log, "w") : NULL;
  if (file) {
    fputs(name, file);
    fclose(file);
  }
  return 1;
}

static int injected(void) { return atoi(getenv("FAIL_ERROR")); }

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int opened(int fd) {
  if (fd >= 0 && fd < (int)sizeof watched)
    watched[fd] = 1;
  return fd;
}
static int isWatched(int fd) { return fd >= 0 && fd < (int)sizeof watched && watched[fd]; }

#define OPEN(name)                                                                                                     \
  int name(const char *path, int flags, ...) {                                                                         \
    va_list list;                                                                                                      \
    va_start(list, flags);                                                                                             \
    mode_t mode = va_arg(list, mode_t);                                                                                \
    va_end(list);                                                                                                      \
    if (!isBelow(path) || !(flags & O_CREAT))                                                                          \
      return REAL(name)(path, flags, mode);                                                                            \
    if (injected() && fails(#name)) {                                                                                  \
      errno = injected();                                                                                              \
      return -1;                                                                                                       \
    }                                                                                                                  \
    return opened(REAL(name)(path, flags, mode));                                                                      \
  }
OPEN(open)
OPEN(open64)

ssize_t write(int fd, const void *data, size_t bytes) {
  if (isWatched(fd) && fails("write")) {
    if (injected()) {
      errno = injected();
      return -1;
    }
    bytes = (bytes + 1) / 2;
  }
  return REAL(write)(fd, data, bytes);
}

#define CALL_OF_FILE(name)                                                                                             \
  int name(int fd) {                                                                                                   \
    int fail = isWatched(fd) && injected() && fails(#name);                                                            \
    int result = REAL(name)(fd); /* close frees the descriptor even if it fails */                                     \
    if (strcmp(#name, "close") == 0 && fd >= 0 && fd < (int)sizeof watched)                                            \
      watched[fd] = 0;                                                                                                 \
    if (fail) {                                                                                                        \
      errno = injected();                                                                                              \
      return -1;                                                                                                       \
    }                                                                                                                  \
    return result;                                                                                                     \
  }
CALL_OF_FILE(fsync)
CALL_OF_FILE(close)

#define CALL_OF_PATH(name, parameters, ...)                                                                            \
  int name parameters {                                                                                                \
    if (isBelow(path) && injected() && fails(#name)) {                                                                 \
      errno = injected();                                                                                              \
      return -1;                                                                                                       \
    }                                                                                                                  \
    return REAL(name)(__VA_ARGS__);                                                                                    \
  }
CALL_OF_PATH(rename, (const char *path, const char *to), path, to)
CALL_OF_PATH(unlink, (const char *path), path)
CALL_OF_PATH(remove, (const char *path), path)
CALL_OF_PATH(mkdir, (const char *path, mode_t mode), path, mode)
