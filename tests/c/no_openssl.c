/*
 * A program without OpenSSL that floods sslsweep with names. Each check prints a line;
 * tests/c_interface.rs knows what they should say. Linked with libsslsweep.so and nothing else.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sslsweep.h"

#define NAMES 100000

/* Memory of the process that is resident, in KiB; 0 where that cannot be read. */
static long resident(void)
{
    char line[256];
    long pages = 0;
    FILE *status = fopen("/proc/self/status", "r");

    while (status != NULL && pages == 0 && fgets(line, sizeof line, status) != NULL)
        if (strncmp(line, "VmRSS:", 6) == 0)
            pages = atol(line + 6);
    if (status != NULL)
        fclose(status);
    return pages;
}

/* Enters and leaves a task of each name; how often a call failed. */
static long flood(const char *prefix)
{
    char name[64];
    long i, failed = 0;

    for (i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "%s %ld", prefix, i);
        failed += sslsweep_enter(name) != SSLSWEEP_OK;
        failed += sslsweep_exit() != SSLSWEEP_OK;
    }
    return failed;
}

static void *floods(void *prefix)
{
    return (void *)flood(prefix);
}

int main(void)
{
    static char all[1 << 20];
    pthread_t thread;
    void *failed = NULL;
    long before, after, own;
    size_t length;

    printf("exit without an enter: %d\n", sslsweep_exit());
    sslsweep_enter("first");
    sslsweep_exit();
    before = resident();
    pthread_create(&thread, NULL, floods, "their name");
    own = flood("my name");
    pthread_join(thread, &failed);
    after = resident();
    printf("flood: %ld and %ld calls failed\n", own, (long)failed);
    printf("memory: %s\n", before > 0 && after - before < 16 * 1024 ? "bounded" : "grown");
    length = sslsweep_snapshot_json(all, sizeof all);
    printf("snapshot: %s\n", length > 0 && length < sizeof all ? "whole" : "cut");
    printf("%s\n", all);
    return 0;
}
