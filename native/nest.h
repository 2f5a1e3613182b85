// Who contains whom among intervals, by a stack of those that are open: what model/calls/nesting.py says in Python.
#ifndef NEST_H
#define NEST_H

#include "bytes.h"

// `count` intervals in nesting order: begin, longer first, position. Writes the position of the parent of each (-1: none),
// how many contain it, and whether it fits: 0 if it sticks out of the interval that it begins in. One of no length contains
// nothing. `open` is room for `count` positions. Whatever the times are, only the arrays are touched.
static void nest(
    const int64_t *begin, const int64_t *finish, size_t count, int64_t *parent, int64_t *depth, uint8_t *fits,
    int64_t *open
) {
    size_t deep = 0;
    for (size_t at = 0; at < count; at++) {
        while (deep && finish[open[deep - 1]] <= begin[at]) deep--;
        parent[at] = deep ? open[deep - 1] : -1;
        depth[at] = (int64_t)deep;
        fits[at] = !deep || finish[at] <= finish[open[deep - 1]];
        if (fits[at] && begin[at] < finish[at]) open[deep++] = (int64_t)at;
    }
}

#endif
