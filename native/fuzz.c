// Damages texts and has them read: for the address and undefined-behavior sanitizers of gcc or Clang.
//
//     cc -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -o fuzz native/fuzz.c && ./fuzz COUNT SEED FILE...
//
// or, for blocks as they are, each after its length in eight bytes:
//
//     ./fuzz - < BLOCKS
//
// Each file holds an array of events. Each input is a copy in memory of exactly its size, so that reading one byte
// beyond it is seen. Prints how many inputs were read whole and how many left to the caller.

#include "reader.c"

#include <stdio.h>

enum { LONGEST = 1 << 16, BLOCKS = 24 };

static uint64_t state;

static uint32_t chance(uint32_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 20) % below;
}

static const char *const WORDS[] = {
    "null", "true", "-1", "1e400", "-0.0", "0.5", "18446744073709551616", "-9223372036854775808", "1e18", "9.5",
    "1234567890123456789", "8796093022209.12345", "4383549797800.1255", "1652387435893212.25", "0.00050000000000000001",
    "12.345678901234567890123456789012345678901234567890123456789012345678", "\"\"", "\"\\ud83d\\ude00\"",
    "\"\\ud800\"", "\"\\u0041\\n\"", "\"12\"", "[]", "{}", "[[1], {\"a\": [2, \"]\"]}]", "nan", "\"X\"", "\"kernel\"",
    "\"args\":", "\"@x\":1,", "\"\xc3\xa9\xf0\x9f\x98\x80\"", "\"\xff\"", ",", "}", "]", "{", "[", ":", "\"",
};

static size_t splice(uint8_t *text, size_t length, size_t at, size_t cut, const void *piece, size_t size) {
    if (cut > length - at) cut = length - at;
    if (length - cut + size > LONGEST) return length;
    memmove(text + at + size, text + at + cut, length - at - cut);
    memcpy(text + at, piece, size);
    return length - cut + size;
}

static size_t damage(uint8_t *text, size_t length) {
    static uint8_t piece[1024];
    size_t at = chance((uint32_t)length), from = chance((uint32_t)length), size = chance(64);
    const char *word = WORDS[chance(sizeof WORDS / sizeof *WORDS)];
    switch (chance(8)) {
        case 0: text[at] = (uint8_t)chance(256); return length;
        case 1: text[at] = (uint8_t) "\"{}[],:\\\n\0 09aeX-.\xff\xc3"[chance(20)]; return length;
        case 2: return splice(text, length, at, chance(300), "", 0);
        case 3: return at > 1 && !chance(8) ? at : length;
        case 4:
            if (size > length - from) size = length - from;
            memcpy(piece, text + from, size);
            return splice(text, length, at, chance(32), piece, size);
        case 5: return splice(text, length, at, 0, word, strlen(word));
        default:  // in the place of a value
            while (at < length && text[at] != ':') at++;
            if (at + 1 >= length) return length;
            for (size = 0; at + 1 + size < length && !strchr(",}", text[at + 1 + size]); size++) {}
            return splice(text, length, at + 1, size, word, strlen(word));
    }
}

static void *memory(size_t size) {
    void *found = malloc(size ? size : 1);
    if (!found) exit(3);
    return found;
}

static void expect(bool holds) {
    if (!holds) abort();
}

static void look_at_tokens(const Table *table) {
    uint64_t size, written;
    tokens(table, 0, NULL, &size);
    uint8_t *copy = memory(size);
    tokens(table, 0, copy, &written);
    expect(size == written && copy[0] == '[' && copy[size - 1] == ']');
    free(copy);
}

// Codes that stand for themselves.
static int32_t *count_up(uint32_t count) {
    int32_t *codes = memory(count * sizeof *codes);
    for (uint32_t at = 0; at < count; at++) codes[at] = (int32_t)at;
    return codes;
}

static void look_at_keys(const Reader *reader, uint32_t inner, uint32_t limit) {
    const Keys *keys = inner ? &reader->inner : &reader->own;
    uint32_t count = keys_count(keys);
    uint32_t *counts = memory(count * (KINDS + 2) * sizeof *counts);
    reader_cells(reader, inner, count, counts);
    for (uint32_t at = 0; at < count; at++) {
        const Key *key = keys->keys[at];
        for (uint32_t kind = 0; kind < KINDS; kind++) {
            uint32_t cells = counts[at * (KINDS + 2) + kind];
            expect(cells == (key ? key->cells[kind].count : 0));
            if (!cells) continue;
            uint32_t known = kind == TEXTS ? key->texts.kept : key->jsons.kept;
            int32_t *rows = memory(cells * sizeof *rows), *codes = count_up(known);
            void *values = memory(cells * cell_size((Kind)kind));
            reader_take_cells(reader, inner, at, kind, 7, &(CodeMap){codes, known}, rows, values);
            for (uint32_t cell = 0; cell < cells; cell++) {
                expect((uint32_t)rows[cell] - 7 < limit && (!cell || rows[cell - 1] < rows[cell]));
                expect(kind < TEXTS || ((const uint32_t *)values)[cell] < known);
            }
            free(rows), free(codes), free(values);
        }
        if (!key) continue;
        look_at_tokens(&key->texts);
        look_at_tokens(&key->jsons);
    }
    free(counts);
}

// Everything that the caller would copy is there, and every code points to something.
static void look(const Reader *reader, const Sizes *sizes) {
    uint32_t threads = reader_threads(reader, 0, NULL);
    int64_t *fields = memory(threads * 4 * sizeof(int64_t));
    reader_threads(reader, 0, fields);
    for (uint32_t at = 0; at < 2 * threads; at++)
        expect(fields[2 * at] != TEXT || (uint64_t)fields[2 * at + 1] < reader->thread_ids.kept);
    free(fields);
    size_t count = sizes->rows;
    RowPlaces places = {memory(count), memory(count * 4), memory(count * 4), memory(count * 4), memory(count * 8),
                        memory(count * 8), memory(count * 8)};
    uint32_t known[] = {sizes->categories, sizes->names, threads, reader->flow_ids.kept};
    CodeMap maps[4];
    for (int at = 0; at < 4; at++) maps[at] = (CodeMap){count_up(known[at]), known[at]};
    reader_take_rows(reader, &places, maps);
    for (size_t row = 0; row < count; row++) {
        expect(places.category[row] == reader->rows.category[row] && places.category[row] >= NO_CODE);
        expect(places.name[row] == reader->rows.name[row] && places.name[row] >= NO_CODE);
        expect((uint32_t)places.thread[row] < threads && places.id[row] == reader->rows.id[row]);
    }
    for (int at = 0; at < 4; at++) free((void *)maps[at].codes);
    free(places.phase), free(places.category), free(places.name), free(places.thread);
    free(places.start), free(places.duration), free(places.id);
    look_at_tokens(&reader->categories);
    look_at_tokens(&reader->names);
    look_at_tokens(&reader->flow_ids);
    look_at_keys(reader, 0, sizes->rows);
    look_at_keys(reader, 1, sizes->rows);
}

// Intervals on an axis so short that many begin or end together; what must hold of parents, depths and what fits.
static void nest_some(void) {
    size_t count = chance(40);
    int64_t *begin = memory(count * 8), *finish = memory(count * 8), *parent = memory(count * 8);
    int64_t *depth = memory(count * 8), *open = memory(count * 8), time = -(int64_t)chance(9);
    uint8_t *fits = memory(count);
    for (size_t at = 0; at < count; at++) {
        begin[at] = time += chance(3);
        finish[at] = time + chance(12);
        if (chance(30) == 0) finish[at] = chance(2) ? INT64_MAX : INT64_MIN;
    }
    nest(begin, finish, count, parent, depth, fits, open);
    for (size_t at = 0; at < count; at++) {
        int64_t around = parent[at];
        expect(around < (int64_t)at && around >= -1 && depth[at] == (around < 0 ? 0 : depth[around] + 1));
        expect(around < 0 ? fits[at] : fits[around] && begin[at] < finish[around]);
        expect(around < 0 || fits[at] == (finish[at] <= finish[around]));
    }
    free(begin), free(finish), free(parent), free(depth), free(open), free(fits);
}

// Slices of a few threads in any order, some rows out of bounds: what must hold of their tree, and of what runs when.
static void grow_a_tree(void) {
    size_t events = 1 + chance(40), count = chance(50), threads = 1 + chance(4), nested = 0;
    int64_t *start = memory(events * 8), *finish = memory(events * 8), *times = memory(count * 16);
    int32_t *thread = memory(events * 4), *rows = memory(count * 4), *order = memory(count * 4), *open = memory(count * 4);
    int32_t *parent = memory(events * 4), *depth = memory(events * 4), *lane = memory(events * 4);
    int32_t *around = memory(events * 4), *running = memory((2 * count + 1) * 4);
    uint8_t *is_operator = memory(events);
    Slice *slices = memory(count * sizeof *slices), *spare = memory(count * sizeof *spare);
    size_t *next = memory(threads * sizeof *next);
    memset(next, 0, threads * sizeof *next);
    for (size_t at = 0; at < events; at++) {
        start[at] = chance(30) ? (int64_t)chance(40) - 9 : INT64_MIN;
        finish[at] = chance(30) ? start[at] + chance(12) : INT64_MAX;
        thread[at] = (int32_t)chance((uint32_t)threads) - !chance(200);
        parent[at] = around[at] = -1, is_operator[at] = (uint8_t)chance(2);
    }
    for (size_t at = 0; at < count; at++) rows[at] = (int32_t)chance((uint32_t)events) + (chance(300) ? 0 : 99);
    bool arranged = arrange(rows, count, start, finish, thread, events, threads, slices, spare, next);
    for (size_t at = 1; arranged && at < count; at++) {
        const Slice *one = &slices[at - 1], *other = &slices[at];
        expect(one->thread < other->thread || (one->thread == other->thread && !is_before(other, one)));
    }
    for (int32_t number = 0; arranged && nested < count; number++) {
        size_t fit = nest_lane(slices, count - nested, number, parent, depth, lane, order + nested, spare);
        expect(fit > 0);
        for (size_t at = nested; at < nested + fit; at++) {
            int32_t row = order[at], above = parent[row];
            expect(above < 0 || (thread[above] == thread[row] && start[above] <= start[row] && finish[row] <= finish[above]));
        }
        nested += fit;
    }
    size_t made = changes(arranged ? order : rows, count, start, finish, parent, events, times, running, open);
    expect(made <= 2 * count && running[0] == -1);
    enclosing(rows, count, parent, is_operator, events, around);
    free(start), free(finish), free(times), free(thread), free(rows), free(order), free(open), free(parent), free(depth);
    free(lane), free(around), free(running), free(is_operator), free(slices), free(spare), free(next);
}

static size_t load(const char *path, uint8_t *text) {
    FILE *file = fopen(path, "rb");
    if (!file) exit(2);
    size_t length = fread(text, 1, LONGEST, file);
    fclose(file);
    return length;
}

// Has a block read; 1 if it was read whole. Now and then all that the caller would do with it is done.
static int have_read(Reader *reader, const uint8_t *text, size_t length) {
    uint8_t *block = memory(length);
    memcpy(block, text, length);
    Sizes sizes;
    int32_t status;
    uint32_t read = reader_add_all(reader, &(Block){block, length}, 1, &sizes, &status);
    expect(read == (status == OK));
    free(block);
    if (status != OK || !chance(8)) look(reader, &sizes);
    if (status != OK) reader_forget(reader);
    else if (!chance(6)) reader_clear(reader);
    return status == OK;
}

static int report(uint64_t inputs, uint64_t whole) {
    printf("%llu inputs, %llu of them read\n", (unsigned long long)inputs, (unsigned long long)whole);
    return 0;
}

static int read_blocks(FILE *file) {
    state = 1;
    Reader *reader = reader_new(state);
    if (!reader) return 3;
    uint64_t inputs = 0, whole = 0, length;
    while (fread(&length, sizeof length, 1, file) == 1) {
        uint8_t *text = memory(length);
        if (fread(text, 1, length, file) != length) return 2;
        inputs++;
        whole += have_read(reader, text, length);
        free(text);
    }
    reader_free(reader);
    return report(inputs, whole);
}

int main(int count, char **arguments) {
    if (count == 2 && !strcmp(arguments[1], "-")) return read_blocks(stdin);
    if (count < 4) return 2;
    static uint8_t texts[16][LONGEST], text[LONGEST];
    size_t lengths[16];
    int files = count - 3 < 16 ? count - 3 : 16;
    for (int at = 0; at < files; at++) lengths[at] = load(arguments[3 + at], texts[at]);
    state = strtoull(arguments[2], NULL, 10) * 2 + 1;
    uint64_t inputs = strtoull(arguments[1], NULL, 10), whole = 0;
    Reader *reader = NULL;
    for (uint64_t input = 0; input < inputs; input++) {
        if (input % BLOCKS == 0) {
            reader_free(reader);
            reader = reader_new(state);
            if (!reader) return 3;
        }
        int from = (int)chance((uint32_t)files);
        size_t length = lengths[from];
        memcpy(text, texts[from], length);
        for (uint32_t times = chance(4) ? chance(3) : chance(40); times && length > 2; times--) length = damage(text, length);
        if (length && chance(4)) text[length - 1] = ']';
        nest_some();
        grow_a_tree();
        whole += have_read(reader, text, length);
    }
    reader_free(reader);
    return report(inputs, whole);
}
