// Damages snapshots and has them read in pieces: for the address and undefined-behavior sanitizers of gcc or Clang.
//
//     cc -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -o fuzz native/fuzz_snapshot.c && ./fuzz COUNT SEED FILE...
//
// Each piece is a copy in memory of exactly its size, so that reading one byte beyond it is seen. Prints how many
// inputs were read and how many hold a snapshot.

#include "snapshot.c"

#include <stdio.h>

enum { LONGEST = 1 << 17, FILES = 16 };
static const uint8_t OPCODES[] = "(.ueasth0jqr}])NKMJGX\x80\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x94\x95\xff";
static uint64_t state;
static volatile uint64_t checked;  // so that what is only read is read

static uint32_t chance(uint32_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 20) % below;
}

static void expect(bool holds) {
    if (!holds) abort();
}

static size_t damage(uint8_t *bytes, size_t length) {
    size_t at = chance((uint32_t)length), from = chance((uint32_t)length), size = chance(200);
    if (size > length - at) size = length - at;
    switch (chance(5)) {
        case 0: bytes[at] = (uint8_t)chance(256); return length;
        case 1: memmove(bytes + at, bytes + at + size, length - at - size); return length - size;
        case 2: return chance(8) ? length : at + 1;
        case 3:
            if (size > length - from) size = length - from;
            memmove(bytes + at, bytes + from, size);
            return length;
        default: bytes[at] = OPCODES[chance(sizeof OPCODES - 1)]; return length;
    }
}

// Every code and range points to something.
static void check_tables(const Reader *r) {
    const uint8_t *wide[] = {r->size.is_wide ? r->size.items : NULL, r->time.is_wide ? r->time.items : NULL};
    uint64_t sum = 0;
    for (int i = 0; i < 2; i++)
        for (uint64_t row = 0; wide[i] && row < r->rows; row++) sum += load64(wide[i] + row * 8);
    checked += sum;
    for (uint64_t i = 0; i < r->rows; i++) {
        if (r->size.is_wide) {
            expect(load32((const uint8_t *)r->stack_of.items + i * 4) < r->stacks.ends.count);
            expect(load32((const uint8_t *)r->label_of.items + i * 4) < r->labels.ends.count);
        }
        expect(r->action[i] <= 6);
        if (r->freed) expect(r->freed[i] >= FREES_OLDER && r->freed[i] < (int64_t)i);
    }
    for (uint64_t i = 0; i < r->segments.count; i++) {
        const Segment *segment = &r->segments.items[i];
        expect(segment->begin <= segment->end && segment->end <= r->blocks.count);
        expect(segment->kind < r->texts.ends.count && segment->pool < r->pairs.ends.count);
    }
    for (uint64_t i = 0; i < r->blocks.count; i++) expect(r->blocks.items[i].stack < r->stacks.ends.count);
    for (uint64_t i = 0; i < r->parts.count; i++) {
        expect(r->parts.items[i].begin <= r->parts.items[i].end && r->parts.items[i].end <= r->rows);
    }
    expect(r->segment_range.end <= r->segments.count && r->note_range.end <= r->notes.count);
    const uint32_t *frames = (const uint32_t *)(const void *)r->stacks.bytes.items;
    for (uint64_t i = 0; i < r->stacks.bytes.count / 4; i++) expect(frames[i] < r->frames.ends.count);
    expect(r->budget.used <= r->budget.limit);
}

static bool read_damaged(const uint8_t *bytes, size_t length) {
    Reader *r = snapshot_new(state, 1 << 20);
    expect(r != NULL);
    uint8_t *piece = malloc(2 * LONGEST);
    expect(piece != NULL);
    size_t kept = 0, at = 0;
    int status = READING;
    while (status == READING) {
        size_t more = chance(4) ? chance(5000) : length;
        if (more > length - at) more = length - at;
        if (!more && at < length) more = 1;
        uint8_t *exact = malloc(kept + more ? kept + more : 1);
        expect(exact != NULL);
        memcpy(exact, piece, kept);
        memcpy(exact + kept, bytes + at, more);
        at += more;
        uint64_t used;
        status = snapshot_read(r, exact, kept + more, !more, &used);
        expect(used <= kept + more);
        kept = kept + more - used;
        memcpy(piece, exact + used, kept);
        free(exact);
    }
    bool found = snapshot_finish(r) == 1;
    check_tables(r);
    snapshot_free(r);
    free(piece);
    return found;
}

int main(int count, char **arguments) {
    if (count < 4) return 2;
    static uint8_t files[FILES][LONGEST], bytes[LONGEST];
    size_t lengths[FILES];
    int known = count - 3 < FILES ? count - 3 : FILES;
    for (int i = 0; i < known; i++) {
        FILE *file = fopen(arguments[3 + i], "rb");
        if (!file) return 2;
        lengths[i] = fread(files[i], 1, LONGEST, file);
        fclose(file);
    }
    state = strtoull(arguments[2], NULL, 10) * 2 + 1;
    uint64_t inputs = strtoull(arguments[1], NULL, 10), found = 0;
    for (uint64_t input = 0; input < inputs; input++) {
        int from = (int)chance((uint32_t)known);
        size_t length = lengths[from];
        memcpy(bytes, files[from], length);
        for (uint32_t times = chance(4) ? 1 + chance(3) : chance(40); times && length > 2; times--) length = damage(bytes, length);
        found += read_damaged(bytes, length);
    }
    printf("%llu inputs, %llu of them snapshots\n", (unsigned long long)inputs, (unsigned long long)found);
    return 0;
}
