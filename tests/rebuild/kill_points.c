/* Ends the process group at the KILL_AT-th change of files whose path begins with one of KILL_BELOW (lines): as kill -9
 * does, but at a moment that can be chosen, between any two changes that any library makes. With KILL_TORN half of a write
 * is done before. KILL_LOG: a file to which each change is added (the fatal one alone, if KILL_AT is set).
 * What is written to mapped memory is not seen; the index of SQLite's log, which it makes anew, does not count. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static const char *below, *log_path, *torn;
static long kill_at;
static atomic_long count;

__attribute__((constructor)) static void begin(void) {
  const char *at = getenv("KILL_AT");
  kill_at = at ? atol(at) : 0;
  torn = getenv("KILL_TORN");
  log_path = getenv("KILL_LOG");
  below = getenv("KILL_BELOW");
}

static void note(const char *what, const char *path) {
  char line[PATH_MAX + 32];
  int length = snprintf(line, sizeof line, "%s %s\n", what, path);
  int fd = syscall(SYS_openat, AT_FDCWD, log_path, O_WRONLY | O_APPEND | O_CREAT, 0600);
  syscall(SYS_write, fd, line, length);
  syscall(SYS_close, fd);
}

/* True if this is the change at which the end comes. */
static int is_last(const char *what, const char *path) {
  size_t length = strlen(path);
  if (length > 4 && !strcmp(path + length - 4, "-shm")) return 0;
  const char *one = below;
  for (;;) {
    size_t size = strcspn(one, "\n");
    if (!strncmp(path, one, size)) break;
    if (!one[size]) return 0;
    one += size + 1;
  }
  if (!kill_at) note(what, path);
  if (!kill_at || atomic_fetch_add(&count, 1) + 1 != kill_at) return 0;
  note(what, path);
  return 1;
}

static void end(void) { kill(0, SIGKILL); for (;;) pause(); }

static int is_last_of(const char *what, int fd) {
  if (!below) return 0;
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return is_last(what, path);
}

static int is_last_at(const char *what, int folder, const char *name) {
  if (!below) return 0;
  char path[2 * PATH_MAX];
  if (name[0] == '/') return is_last(what, name);
  if (folder == AT_FDCWD) {
    if (syscall(SYS_getcwd, path, PATH_MAX) < 0) return 0;
  } else {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
    if (length < 0) return 0;
    path[length] = 0;
  }
  strcat(path, "/");
  strncat(path, name, PATH_MAX - 1);
  return is_last(what, path);
}

ssize_t write(int fd, const void *data, size_t size) {
  if (is_last_of("write", fd)) { if (torn) syscall(SYS_write, fd, data, size / 2); end(); }
  return syscall(SYS_write, fd, data, size);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off_t at) {
  if (is_last_of("write", fd)) { if (torn) syscall(SYS_pwrite64, fd, data, size / 2, at); end(); }
  return syscall(SYS_pwrite64, fd, data, size, at);
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { return pwrite64(fd, data, size, at); }
ssize_t writev(int fd, const struct iovec *parts, int n) {
  if (is_last_of("write", fd)) { if (torn && n) syscall(SYS_write, fd, parts[0].iov_base, parts[0].iov_len / 2); end(); }
  return syscall(SYS_writev, fd, parts, n);
}
ssize_t copy_file_range(int from, off_t *at, int to, off_t *to_at, size_t size, unsigned flags) {
  if (is_last_of("copy", to)) end();
  return syscall(SYS_copy_file_range, from, at, to, to_at, size, flags);
}
ssize_t sendfile64(int to, int from, off_t *at, size_t size) {
  if (is_last_of("copy", to)) end();
  return syscall(SYS_sendfile, to, from, at, size);
}
ssize_t sendfile(int to, int from, off_t *at, size_t size) { return sendfile64(to, from, at, size); }
int ftruncate64(int fd, off_t size) {
  if (is_last_of("truncate", fd)) end();
  return syscall(SYS_ftruncate, fd, size);
}
int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }
int fsync(int fd) {
  if (is_last_of("sync", fd)) end();
  return syscall(SYS_fsync, fd);
}
int fdatasync(int fd) {
  if (is_last_of("sync", fd)) end();
  return syscall(SYS_fdatasync, fd);
}
int renameat2(int from, const char *old, int to, const char *name, unsigned flags) {
  if (is_last_at("rename", to, name)) end();
  return syscall(SYS_renameat2, from, old, to, name, flags);
}
int renameat(int from, const char *old, int to, const char *name) { return renameat2(from, old, to, name, 0); }
int rename(const char *old, const char *name) { return renameat2(AT_FDCWD, old, AT_FDCWD, name, 0); }
int linkat(int from, const char *old, int to, const char *name, int flags) {
  if (is_last_at("link", to, name)) end();
  return syscall(SYS_linkat, from, old, to, name, flags);
}
int link(const char *old, const char *name) { return linkat(AT_FDCWD, old, AT_FDCWD, name, 0); }
int unlinkat(int folder, const char *name, int flags) {
  if (is_last_at("delete", folder, name)) end();
  return syscall(SYS_unlinkat, folder, name, flags);
}
int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }
int rmdir(const char *name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }
int mkdirat(int folder, const char *name, mode_t mode) {
  if (is_last_at("mkdir", folder, name)) end();
  return syscall(SYS_mkdirat, folder, name, mode);
}
int mkdir(const char *name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }
