/*
 * A disk whose power can fail and whose space can end, preloaded into the process under test.
 *
 * It stands between that process and the files below the folder DISK_FOLDER:
 *
 *   DISK_TRACE=<file>   records there what is done to them, in order, so that a test can build what the disk would
 *                       hold had the power failed at any point in between.
 *   DISK_SPACE=<bytes>  lets the files grow by so much altogether; beyond that a write fails with ENOSPC ...
 *   DISK_FREED=<file>   ... until this file exists.
 *
 * One lock is held over each operation together with its record. The order of the trace is therefore the order in
 * which things happened: a write that stands before a sync of its file was done before that sync began.
 *
 * What is taken away or replaced gives its space back.
 *
 * Not seen here: writes through a mapping (SQLite has none but in its -shm file), new folders and vectored writes (there
 * are none). The test compares what it builds from the whole trace with the real files, so nothing can slip by.
 */
#undef _FORTIFY_SOURCE /* Its inline wrappers would take the names of the functions defined here. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MOST_FILES = 1024 };

/* What a record is of; `trace.rs` reads the same letters. */
enum { CREATE = 'c', WRITE = 'w', TRUNCATE = 't', SYNC = 's', REMOVE = 'r', RENAME = 'm' };

/* What comes before the path and the data of a record. */
struct head {
    uint64_t kind;
    uint64_t path_length;
    uint64_t offset; /* of a write; of a truncation the new length */
    uint64_t data_length;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const char *folder;
static const char *freed;
static int trace = -1;
static int64_t space = INT64_MAX;
/* By descriptor: the path below the folder, empty for the folder itself; null for files elsewhere. */
static char *names[MOST_FILES];

static int (*real_openat)(int, const char *, int, ...);
static int (*real_close)(int);
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off64_t);
static int (*real_ftruncate)(int, off64_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static int (*real_unlink)(const char *);
static int (*real_rename)(const char *, const char *);

/* A trace that misses something would prove nothing: better no process. */
static void give_up(const char *why, const char *name)
{
    fprintf(stderr, "disk.c: %s: %s\n", name, why);
    abort();
}

static void *find(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found)
        give_up("the C library does not have it", name);
    return found;
}

static void begin(void)
{
    real_openat = find("openat64");
    real_close = find("close");
    real_write = find("write");
    real_pwrite = find("pwrite64");
    real_ftruncate = find("ftruncate64");
    real_fsync = find("fsync");
    real_fdatasync = find("fdatasync");
    real_unlink = find("unlink");
    real_rename = find("rename");
    folder = getenv("DISK_FOLDER");
    freed = getenv("DISK_FREED");
    if (getenv("DISK_SPACE"))
        space = atoll(getenv("DISK_SPACE"));
    const char *path = getenv("DISK_TRACE");
    if (path && (trace = real_openat(AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) < 0)
        give_up("the trace can't be opened", path);
}

/* The path below the folder; null for a file elsewhere. */
static const char *name_of(const char *path)
{
    pthread_once(&once, begin);
    size_t length = folder ? strlen(folder) : 0;
    if (!length || strncmp(path, folder, length))
        return NULL;
    return path[length] == '/' ? path + length + 1 : path[length] ? NULL : path + length;
}

static const char *name_of_descriptor(int fd)
{
    pthread_once(&once, begin);
    return fd >= 0 && fd < MOST_FILES ? names[fd] : NULL;
}

static int ends_in(const char *name, const char *end)
{
    size_t length = strlen(name), end_length = strlen(end);
    return length >= end_length && !strcmp(name + length - end_length, end);
}

/* Appends a record, by one write. The caller holds the lock. */
static void record(int kind, const char *name, uint64_t offset, const void *data, size_t length)
{
    /* SQLite makes its shared memory anew after a crash, and the file of the turn is always empty. */
    if (trace < 0 || ends_in(name, "-shm") || ends_in(name, "-turn"))
        return;
    struct head head = {kind, strlen(name), offset, length};
    struct iovec parts[] = {{&head, sizeof head}, {(void *)name, head.path_length}, {(void *)data, length}};
    if (writev(trace, parts, 3) != (ssize_t)(sizeof head + head.path_length + length))
        give_up("the trace can't be written", name);
}

/* How much of a write still has room. As on a real disk, that may be a part of it, and what grows nothing always has
 * room. The caller holds the lock. */
static size_t that_fits(int fd, off64_t offset, size_t length)
{
    struct stat64 now;
    if (fstat64(fd, &now))
        give_up("its length is not known", names[fd]);
    int64_t growth = offset + (int64_t)length - now.st_size;
    if (growth <= 0)
        return length;
    int64_t lacking = growth - space;
    if (lacking <= 0 || (freed && !access(freed, F_OK))) {
        space -= growth;
        return length;
    }
    if (lacking >= (int64_t)length)
        return 0;
    space = 0;
    return length - lacking;
}

/* The space that a file takes up, to be given back when it goes. */
static int64_t space_of(const char *path)
{
    struct stat64 now;
    return stat64(path, &now) ? 0 : now.st_size;
}

static int opened(int fd, const char *name, int is_new, int flags)
{
    if (fd < 0)
        return fd;
    if (fd >= MOST_FILES || !(names[fd] = strdup(name)))
        give_up("there are too many open files", name);
    if (is_new)
        record(CREATE, name, 0, NULL, 0);
    else if (flags & O_TRUNC)
        record(TRUNCATE, name, 0, NULL, 0);
    return fd;
}

static int open_at(int at, const char *path, int flags, mode_t mode)
{
    const char *name = name_of(path);
    if (!name)
        return real_openat(at, path, flags, mode);
    pthread_mutex_lock(&lock);
    int is_new = (flags & O_CREAT) && access(path, F_OK);
    if (flags & O_TRUNC)
        space += space_of(path);
    int fd = opened(real_openat(at, path, flags, mode), name, is_new, flags);
    pthread_mutex_unlock(&lock);
    return fd;
}

/* The mode is there only where a file may be made. */
#define TAKE_MODE(last) \
    mode_t mode = 0; \
    if (flags & (O_CREAT | __O_TMPFILE)) { \
        va_list rest; \
        va_start(rest, last); \
        mode = va_arg(rest, mode_t); \
        va_end(rest); \
    }

int open(const char *path, int flags, ...)
{
    TAKE_MODE(flags)
    return open_at(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    TAKE_MODE(flags)
    return open_at(AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

int openat(int at, const char *path, int flags, ...)
{
    TAKE_MODE(flags)
    return open_at(at, path, flags, mode);
}

int openat64(int at, const char *path, int flags, ...)
{
    TAKE_MODE(flags)
    return open_at(at, path, flags | O_LARGEFILE, mode);
}

int close(int fd)
{
    if (!name_of_descriptor(fd))
        return real_close(fd);
    pthread_mutex_lock(&lock);
    free(names[fd]);
    names[fd] = NULL;
    int done = real_close(fd);
    pthread_mutex_unlock(&lock);
    return done;
}

/* A write at `offset`, or where the descriptor stands if that is negative. */
static ssize_t write_at(int fd, const void *data, size_t length, off64_t offset)
{
    pthread_mutex_lock(&lock);
    off64_t start = offset;
    if (start < 0)
        start = lseek64(fd, 0, fcntl(fd, F_GETFL) & O_APPEND ? SEEK_END : SEEK_CUR);
    size_t fits = that_fits(fd, start, length);
    ssize_t done = -1;
    if (fits || !length) {
        record(WRITE, names[fd], start, data, fits);
        done = offset < 0 ? real_write(fd, data, fits) : real_pwrite(fd, data, fits, offset);
        if (done != (ssize_t)fits)
            give_up("was not written as recorded", names[fd]);
    } else {
        errno = ENOSPC;
    }
    pthread_mutex_unlock(&lock);
    return done;
}

ssize_t write(int fd, const void *data, size_t length)
{
    return name_of_descriptor(fd) ? write_at(fd, data, length, -1) : real_write(fd, data, length);
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t offset)
{
    return name_of_descriptor(fd) ? write_at(fd, data, length, offset) : real_pwrite(fd, data, length, offset);
}

ssize_t pwrite64(int fd, const void *data, size_t length, off64_t offset)
{
    return name_of_descriptor(fd) ? write_at(fd, data, length, offset) : real_pwrite(fd, data, length, offset);
}

int ftruncate64(int fd, off64_t length)
{
    const char *name = name_of_descriptor(fd);
    if (!name)
        return real_ftruncate(fd, length);
    pthread_mutex_lock(&lock);
    int done = -1;
    /* Counted as a write of nothing that ends there: it fits wholly, or not at all. */
    struct stat64 now;
    if (!fstat64(fd, &now) && length > now.st_size && !that_fits(fd, length - 1, 1)) {
        errno = ENOSPC;
    } else {
        record(TRUNCATE, name, length, NULL, 0);
        if ((done = real_ftruncate(fd, length)))
            give_up("was not cut as recorded", name);
    }
    pthread_mutex_unlock(&lock);
    return done;
}

int ftruncate(int fd, off_t length)
{
    return ftruncate64(fd, length);
}

/* Recorded once it has returned, and only if it did its work. */
static int sync_by(int (*real)(int), int fd, const char *name)
{
    pthread_mutex_lock(&lock);
    int done = real(fd);
    if (!done)
        record(SYNC, name, 0, NULL, 0);
    pthread_mutex_unlock(&lock);
    return done;
}

int fsync(int fd)
{
    const char *name = name_of_descriptor(fd);
    return name ? sync_by(real_fsync, fd, name) : real_fsync(fd);
}

int fdatasync(int fd)
{
    const char *name = name_of_descriptor(fd);
    return name ? sync_by(real_fdatasync, fd, name) : real_fdatasync(fd);
}

int unlink(const char *path)
{
    const char *name = name_of(path);
    if (!name)
        return real_unlink(path);
    pthread_mutex_lock(&lock);
    int64_t freed_space = space_of(path);
    int done = real_unlink(path);
    if (!done) {
        space += freed_space;
        record(REMOVE, name, 0, NULL, 0);
    }
    pthread_mutex_unlock(&lock);
    return done;
}

int rename(const char *from, const char *to)
{
    const char *name = name_of(from), *new_name = name_of(to);
    if (!name && !new_name)
        return real_rename(from, to);
    if (!name || !new_name)
        give_up("goes over the border of the folder", from);
    pthread_mutex_lock(&lock);
    int64_t freed_space = space_of(to);
    int done = real_rename(from, to);
    if (!done) {
        space += freed_space;
        record(RENAME, name, 0, new_name, strlen(new_name));
    }
    pthread_mutex_unlock(&lock);
    return done;
}
