// Random columns of the fuzzers of jobs, networks and schedules, each in memory of exactly its size.
#ifndef FUZZ_DRAW_H
#define FUZZ_DRAW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state;

static uint64_t draw(uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
}

static void expect(bool holds) {
    if (!holds) abort();
}

// Mostly ns of a trace, sometimes the largest numbers there are.
static int64_t draw_time(void) {
    uint64_t kind = draw(40);
    if (kind == 0) return INT64_MAX - (int64_t)draw(3);
    if (kind == 1) return INT64_MIN + (int64_t)draw(3);
    return (int64_t)draw(1000);
}

static void *buffer_for(uint64_t count, size_t size) {
    void *scratch = malloc(count ? count * size : 1);
    expect(scratch);
    return scratch;
}

static int64_t *zeros(uint64_t count) {
    int64_t *scratch = buffer_for(count, sizeof *scratch);
    for (uint64_t i = 0; i < count; i++) scratch[i] = 0;
    return scratch;
}

static int64_t *draw_times(uint64_t count) {
    int64_t *times = buffer_for(count, sizeof *times);
    for (uint64_t i = 0; i < count; i++) times[i] = draw_time();
    return times;
}

static int64_t *draw_numbers(uint64_t count, uint64_t below) {
    int64_t *numbers = buffer_for(count, sizeof *numbers);
    for (uint64_t i = 0; i < count; i++) numbers[i] = (int64_t)draw(below);
    return numbers;
}

static int32_t *draw_narrow(uint64_t count, uint64_t below) {
    int32_t *numbers = buffer_for(count, sizeof *numbers);
    for (uint64_t i = 0; i < count; i++) numbers[i] = (int32_t)draw(below);
    return numbers;
}

// One in `rarity` is set.
static uint8_t *draw_flags(uint64_t count, uint64_t rarity) {
    uint8_t *flags = buffer_for(count, 1);
    for (uint64_t i = 0; i < count; i++) flags[i] = !draw(rarity);
    return flags;
}

static void sort(int64_t *values, uint64_t count) {
    for (uint64_t i = 1; i < count; i++)
        for (uint64_t at = i; at && values[at - 1] > values[at]; at--) {
            int64_t value = values[at];
            values[at] = values[at - 1], values[at - 1] = value;
        }
}

#endif
