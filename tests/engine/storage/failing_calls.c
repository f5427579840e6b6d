/* Loaded before the C library: the n-th call of a kind fails, and with `stays` all after it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/types.h>

enum { WRITE, SYNC, RENAME, TRUNCATE, NOTHING };
static int failing = NOTHING, at = 0, stays = 0, calls = 0;

void fail(int kind, int n, int all_after) { failing = kind; at = n; stays = all_after; calls = 0; }
int is_reached(void) { return calls >= at; }

static int fails(int kind) {
    if (kind != failing) return 0;
    calls++;
    if (calls != at && !(stays && calls > at)) return 0;
    errno = kind == WRITE ? ENOSPC : EIO;
    return 1;
}

#define CALL(type, name, kind, parameters, arguments)                          \
    type name parameters {                                                     \
        static type (*original) parameters;                                    \
        if (!original) original = dlsym(RTLD_NEXT, #name);                     \
        return fails(kind) ? -1 : original arguments;                          \
    }

CALL(ssize_t, write, WRITE, (int file, const void *data, size_t n), (file, data, n))
CALL(ssize_t, pwrite, WRITE, (int file, const void *data, size_t n, off_t place), (file, data, n, place))
CALL(ssize_t, pwrite64, WRITE, (int file, const void *data, size_t n, off64_t place), (file, data, n, place))
CALL(int, fsync, SYNC, (int file), (file))
CALL(int, fdatasync, SYNC, (int file), (file))
CALL(int, rename, RENAME, (const char *from, const char *to), (from, to))
CALL(int, truncate, TRUNCATE, (const char *path, off_t n), (path, n))
CALL(int, truncate64, TRUNCATE, (const char *path, off64_t n), (path, n))
CALL(int, ftruncate, TRUNCATE, (int file, off_t n), (file, n))
CALL(int, ftruncate64, TRUNCATE, (int file, off64_t n), (file, n))
