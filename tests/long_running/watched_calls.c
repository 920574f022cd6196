/* Watches the calls by which a process changes the file data.mdb, loaded by LD_PRELOAD.

   WATCH_LOG=FILE      appends every write and sync to a file; see watched.py for its format;
   WATCH_FAIL=N        the call number N, from 1, and all after it fail
   WATCH_ERRNO=E       with this error;
   WATCH_ONCE=1        only that one call fails;
   WATCH_SHORT=1       a write that fails has written half of its sectors before.

   A byte that is written into a file acks.txt is logged as an acknowledgement. The variables are
   read at each call, so a forked child can set its own. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

static long calls;

static int is_watched(int fd)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 8)
        return 0;
    path[n] = 0;
    if (!strcmp(path + n - 8, "acks.txt"))
        return 2;
    return !strcmp(path + n - 8, "data.mdb");
}

static int should_fail(void)
{
    const char *number = getenv("WATCH_FAIL"), *error = getenv("WATCH_ERRNO");
    if (!number || !error)
        return 0;
    long at = atol(number), now = ++calls;
    if (now != at && (now < at || getenv("WATCH_ONCE")))
        return 0;
    errno = atoi(error);
    return 1;
}

static void put(int log, const void *bytes, size_t n)
{
    static ssize_t (*real)(int, const void *, size_t);
    if (!real)
        real = dlsym(RTLD_NEXT, "write");
    while (n) {
        ssize_t done = real(log, bytes, n);
        if (done < 0)
            abort();
        bytes = (const char *)bytes + done;
        n -= done;
    }
}

/* Kind: w write, s sync, t truncation, r replacement by a file, a acknowledgement. */
static void record(int fd, char kind, uint64_t offset, const struct iovec *parts, int n_parts)
{
    const char *name = getenv("WATCH_LOG");
    if (!name)
        return;
    int kept = errno, log = open(name, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (log < 0)
        abort();
    if (kind == 'w' && fcntl(fd, F_GETFL) & O_DSYNC)
        kind = 'd'; /* a write that is a sync of itself */
    uint64_t size = 0;
    for (int i = 0; i < n_parts; i++)
        size += parts[i].iov_len;
    put(log, &kind, 1);
    put(log, &offset, 8);
    put(log, &size, 8);
    for (int i = 0; i < n_parts; i++)
        put(log, parts[i].iov_base, parts[i].iov_len);
    close(log);
    errno = kept;
}

ssize_t pwritev(int fd, const struct iovec *parts, int n, off_t offset)
{
    static ssize_t (*real)(int, const struct iovec *, int, off_t);
    if (!real)
        real = dlsym(RTLD_NEXT, "pwritev");
    if (is_watched(fd) != 1)
        return real(fd, parts, n, offset);
    if (should_fail()) {
        int error = errno;
        if (getenv("WATCH_SHORT"))
            real(fd, parts, n / 2, offset);
        errno = error;
        return -1;
    }
    record(fd, 'w', offset, parts, n);
    return real(fd, parts, n, offset);
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t offset)
{
    static ssize_t (*real)(int, const void *, size_t, off_t);
    if (!real)
        real = dlsym(RTLD_NEXT, "pwrite");
    if (is_watched(fd) != 1)
        return real(fd, bytes, n, offset);
    if (should_fail()) {
        int error = errno;
        if (getenv("WATCH_SHORT"))
            real(fd, bytes, n / 1024 * 512, offset);
        errno = error;
        return -1;
    }
    struct iovec part = {(void *)bytes, n};
    record(fd, 'w', offset, &part, 1);
    return real(fd, bytes, n, offset);
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    static ssize_t (*real)(int, const void *, size_t);
    if (!real)
        real = dlsym(RTLD_NEXT, "write");
    int watched = is_watched(fd);
    struct iovec part = {(void *)bytes, n};
    if (watched == 2)
        record(fd, 'a', 0, NULL, 0);
    if (watched != 1)
        return real(fd, bytes, n);
    if (should_fail())
        return -1;
    record(fd, 'w', lseek(fd, 0, SEEK_CUR), &part, 1);
    return real(fd, bytes, n);
}

ssize_t writev(int fd, const struct iovec *parts, int n)
{
    static ssize_t (*real)(int, const struct iovec *, int);
    if (!real)
        real = dlsym(RTLD_NEXT, "writev");
    if (is_watched(fd) != 1)
        return real(fd, parts, n);
    if (should_fail())
        return -1;
    record(fd, 'w', lseek(fd, 0, SEEK_CUR), parts, n);
    return real(fd, parts, n);
}

#define SYNC(NAME)                                                                                 \
    int NAME(int fd)                                                                               \
    {                                                                                              \
        static int (*real)(int);                                                                   \
        if (!real)                                                                                 \
            real = dlsym(RTLD_NEXT, #NAME);                                                        \
        if (is_watched(fd) != 1)                                                                       \
            return real(fd);                                                                       \
        if (should_fail())                                                                         \
            return -1;                                                                             \
        record(fd, 's', 0, NULL, 0);                                                               \
        return real(fd);                                                                           \
    }
SYNC(fsync)
SYNC(fdatasync)

int ftruncate(int fd, off_t size)
{
    static int (*real)(int, off_t);
    if (!real)
        real = dlsym(RTLD_NEXT, "ftruncate");
    if (is_watched(fd) != 1)
        return real(fd, size);
    if (should_fail())
        return -1;
    record(fd, 't', size, NULL, 0);
    return real(fd, size);
}

int rename(const char *from, const char *to)
{
    static int (*real)(const char *, const char *);
    if (!real)
        real = dlsym(RTLD_NEXT, "rename");
    size_t n = strlen(to);
    if (n < 8 || strcmp(to + n - 8, "data.mdb"))
        return real(from, to);
    if (should_fail())
        return -1;
    int fd = open(from, O_RDONLY);
    struct iovec part = {malloc(1 << 20), 0};
    if (fd < 0 || !part.iov_base)
        abort();
    part.iov_len = read(fd, part.iov_base, 1 << 20);
    close(fd);
    record(-1, 'r', 0, &part, 1);
    free(part.iov_base);
    return real(from, to);
}

ssize_t pwrite64(int fd, const void *bytes, size_t n, off_t offset)
{
    return pwrite(fd, bytes, n, offset);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int n, off_t offset)
{
    return pwritev(fd, parts, n, offset);
}

int ftruncate64(int fd, off_t size)
{
    return ftruncate(fd, size);
}
