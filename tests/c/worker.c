/*
 * A worker in C. Each check prints a line; tests/c_interface.rs knows what they should say.
 * Linked with libsslsweep.so and with a libcrypto, whose few calls are declared here: their prototypes
 * are the same in all releases.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "sslsweep.h"

extern unsigned long ERR_peek_error(void);
extern void ERR_clear_error(void);
extern void *BIO_new_mem_buf(const void *data, int length);
extern int BIO_free(void *bio);
extern void *PEM_read_bio_X509(void *bio, void **x, void *callback, void *argument);

/* Only 1.0.x has these, and no program with threads uses it without them. */
extern int CRYPTO_num_locks(void) __attribute__((weak));
extern void CRYPTO_set_locking_callback(void (*callback)(int, int, const char *, int))
    __attribute__((weak));

static pthread_mutex_t locks[64];

static void lock(int mode, int number, const char *file, int line)
{
    (void)file, (void)line;
    if (mode & 1)
        pthread_mutex_lock(&locks[number]);
    else
        pthread_mutex_unlock(&locks[number]);
}

static void give_locks(void)
{
    int i;

    if (CRYPTO_num_locks == NULL || CRYPTO_num_locks() > 64)
        return;
    for (i = 0; i < CRYPTO_num_locks(); i++)
        pthread_mutex_init(&locks[i], NULL);
    CRYPTO_set_locking_callback(lock);
}

/* A loop over the certificates of a file ends with an error in the queue: "no start line". */
static void parse(void)
{
    void *bio = BIO_new_mem_buf("no certificate", -1);
    PEM_read_bio_X509(bio, NULL, NULL, NULL);
    BIO_free(bio);
}

static const char *queue(void)
{
    return ERR_peek_error() == 0 ? "clean" : "dirty";
}

static void *ends_inside(void *argument)
{
    (void)argument;
    sslsweep_enter("never left");
    parse();
    return NULL;
}

static void snapshot(void)
{
    static char all[1 << 20], cut[16];
    size_t length = sslsweep_snapshot_json(NULL, 0);
    size_t written = sslsweep_snapshot_json(all, sizeof all);

    printf("snapshot: %s", length > 0 && written > 0 && strlen(all) == written ? "whole" : "broken");
    memset(cut, '?', sizeof cut);
    written = sslsweep_snapshot_json(cut, 8);
    printf(", cut: %s", written >= 8 && strlen(cut) == 7 && cut[8] == '?' ? "ended" : "overrun");
    printf(", none: %s\n", sslsweep_snapshot_json(cut, 0) > 0 && cut[8] == '?' ? "asked" : "broken");
    printf("%s\n", all);
}

int main(void)
{
    int i, entered, left;
    pthread_t thread;
    char label[2000];

    give_locks();
    printf("version %s\n", sslsweep_version());

    parse();
    printf("without a task: %s\n", queue());
    ERR_clear_error();

    entered = sslsweep_enter("parse");
    parse();
    printf("inside the task: %s\n", queue());
    left = sslsweep_exit();
    printf("after the task: %s (%d, %d)\n", queue(), entered, left);

    sslsweep_enter("outer");
    parse();
    sslsweep_enter("inner");
    parse();
    sslsweep_exit();
    printf("after the inner task: %s\n", queue());
    sslsweep_exit();
    printf("after the outer task: %s\n", queue());

    printf("exit too many: %d, %d\n", sslsweep_exit(), sslsweep_exit());

    entered = sslsweep_enter(NULL);
    parse();
    left = sslsweep_exit();
    printf("without a label: %s (%d, %d)\n", queue(), entered, left);

    entered = sslsweep_enter("not \xff UTF-8");
    parse();
    left = sslsweep_exit();
    printf("label that is no UTF-8: %s (%d, %d)\n", queue(), entered, left);

    memset(label, 'x', sizeof label - 1);
    label[sizeof label - 1] = '\0';
    entered = sslsweep_enter(label);
    parse();
    left = sslsweep_exit();
    printf("long label: %s (%d, %d)\n", queue(), entered, left);

    entered = 0;
    for (i = 0; i < 1000; i++)
        if (sslsweep_enter("deep") == SSLSWEEP_TOO_DEEP)
            entered++;
    parse();
    left = 0;
    for (i = 0; i < 1000; i++)
        if (sslsweep_exit() != SSLSWEEP_OK)
            left++;
    printf("too deep: %d refused, %d exits failed, %s\n", entered, left, queue());

    pthread_create(&thread, NULL, ends_inside, NULL);
    pthread_join(thread, NULL);
    printf("a thread ended inside a task\n");
    snapshot();

    sslsweep_enter("never left by main");
    parse();
    return 0;
}
