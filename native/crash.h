// A crash while the reader is at work says so before the process ends as it would have ended.

#ifndef CRASH_H
#define CRASH_H

#include <signal.h>
#include <string.h>

#if defined(_WIN32)
#include <io.h>
#define write_bytes _write
#else
#include <unistd.h>
#define write_bytes write
#endif

typedef void (*Handler)(int);

// How many threads read. Of the whole process, as signals are: a crash of one that does not says the same meanwhile.
static int reading;
static char crash_message[512];
static const int CRASHES[] = {
    SIGSEGV, SIGABRT, SIGILL, SIGFPE,
#if defined(SIGBUS)
    SIGBUS,
#endif
};
enum { CRASH_KINDS = sizeof CRASHES / sizeof *CRASHES };
static Handler formerly[CRASH_KINDS];

// Only what is safe in a handler of signals. The instruction then runs, and crashes, again, or is raised again.
static void on_crash(int number) {
    if (__atomic_load_n(&reading, __ATOMIC_RELAXED) && write_bytes(2, crash_message, (unsigned)strlen(crash_message)) < 0)
        __atomic_store_n(&reading, 0, __ATOMIC_RELAXED);
    for (int at = 0; at < CRASH_KINDS; at++)
        if (CRASHES[at] == number) signal(number, formerly[at]);
    raise(number);
}

static inline void begin_reading(void) { __atomic_add_fetch(&reading, 1, __ATOMIC_RELAXED); }

static inline void end_reading(void) { __atomic_sub_fetch(&reading, 1, __ATOMIC_RELAXED); }

static void say_crash(const char *message) {
    strncpy(crash_message, message, sizeof crash_message - 1);
    for (int at = 0; at < CRASH_KINDS; at++) {
        Handler former = signal(CRASHES[at], on_crash);
        if (former != on_crash) formerly[at] = former == SIG_ERR ? SIG_DFL : former;
    }
}

#endif
