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

// Of the whole process, as signals are: a crash of one thread while another one reads says the same.
static volatile sig_atomic_t reading;
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
    if (reading && write_bytes(2, crash_message, (unsigned)strlen(crash_message)) < 0) reading = 0;
    for (int at = 0; at < CRASH_KINDS; at++)
        if (CRASHES[at] == number) signal(number, formerly[at]);
    raise(number);
}

static void say_crash(const char *message) {
    strncpy(crash_message, message, sizeof crash_message - 1);
    for (int at = 0; at < CRASH_KINDS; at++) {
        Handler former = signal(CRASHES[at], on_crash);
        if (former != on_crash) formerly[at] = former == SIG_ERR ? SIG_DFL : former;
    }
}

#endif
