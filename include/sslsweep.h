/*
 * sslsweep: keeps worker threads clean of what tasks leave in OpenSSL's per-thread state.
 *
 * A task is one unit of work on a worker thread: an accept, a read, a request. Enter it when it begins
 * and leave it when it ends, on the same thread:
 *
 *     sslsweep_enter("read");
 *     ... SSL_read(ssl, ...), SSL_get_error(ssl, ...) ...
 *     sslsweep_exit();
 *
 * When the outermost task ends, the thread's error queue in every libcrypto of the process is looked at;
 * errors that the task left are recorded under its label and cleared. On OpenSSL 1.0.x the thread state
 * is given back as well. A task that left nothing costs a few dozen nanoseconds. Tasks nest: an inner one
 * takes back what it added and leaves the rest of the queue to the outer one.
 *
 * Each enter needs one exit, whatever enter returned: programs may ignore what both return. A task that
 * its thread never leaves ends with the thread. Do not jump out of a task (longjmp), leave it on another
 * thread (fibers), call these functions in a signal handler, or cancel a thread (pthread_cancel) inside them.
 * Do not wait in an initialiser that dlopen runs for another thread's first task: it needs the linker's lock.
 *
 * The library loads no OpenSSL and needs none. In a process without one the calls do nothing.
 *
 * Build with: cc program.c -lsslsweep
 */
#ifndef SSLSWEEP_H
#define SSLSWEEP_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Done. */
#define SSLSWEEP_OK 0
/* sslsweep failed inside. Nothing was done; please report it. */
#define SSLSWEEP_INTERNAL (-1)
/* An exit without an enter on this thread. Nothing was done; look for a path that leaves twice. */
#define SSLSWEEP_UNBALANCED (-2)
/* More than 64 tasks are entered on this thread. This one is not swept; look for a path that never leaves. */
#define SSLSWEEP_TOO_DEEP (-3)
/* The thread is ending and keeps no tasks any more. */
#define SSLSWEEP_THREAD_ENDING (-4)

/*
 * Enters a task on the calling thread. The label names it in reports: one name for each kind of work
 * ("accept", "read"), not for each request, since 255 names are told apart. It is copied; 128 bytes of it are
 * kept, and what is not UTF-8 is replaced. NULL stands for "(unnamed)".
 * Returns SSLSWEEP_OK or a negative number.
 */
int sslsweep_enter(const char *label);

/*
 * Leaves the task that the calling thread entered last, and sweeps.
 * Returns SSLSWEEP_OK or a negative number.
 */
int sslsweep_exit(void);

/*
 * Writes what sslsweep sees now as one JSON object: libraries, blind spots, queues, thread states, and the
 * ledger of who left what; growth is counted from the process's first call. As snprintf does: writes at most size bytes with the NUL, and returns the length
 * of the whole text without it, so that a return of size or more means that it was cut. The buffer may be
 * NULL to ask for the length. The next call may have more to say: leave room, or try again.
 * Returns 0 when it fails. Takes milliseconds, and allocates: not for the path of a request.
 */
size_t sslsweep_snapshot_json(char *buffer, size_t size);

/* The version of the library, such as "0.1.0". It lives as long as the process. */
const char *sslsweep_version(void);

/*
 * 1 where this copy of the library has refused to serve a JVM, since another copy was there first: two
 * would not know of each other's tasks. 0 otherwise.
 */
int sslsweep_refused(void);

#ifdef __cplusplus
}
#endif

#endif
