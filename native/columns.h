// What was read: a row for each event, and cells of its arguments by key.
#ifndef COLUMNS_H
#define COLUMNS_H

#include "number.h"
#include "table.h"

#define ABSENT INT64_MIN
#define FIRST_TEXT_ID (-((int64_t)1 << 62))

enum { NO_CODE = -1, MOST_KEYS = 512, MOST_THREADS = 1 << 20 };

// The rows of one kind of values of a key: int64, double, or the codes of texts or of other JSON.
typedef enum { INTEGERS, DOUBLES, TEXTS, JSONS, KINDS } Kind;

typedef struct {
    int32_t *rows;
    void *values;
    uint32_t count, kept, capacity;
} Cells;

typedef enum { PHASE, CATEGORY, NAME, PID, TID, TIME, DURATION, ID, ARGUMENTS, OTHER } Field;

enum { JOINTS = 4, LONGEST_JOINT = 60 };  // a power of two

// The bytes between two values, from behind the first (or behind a brace) up to the next one, with the key of that;
// without a key they end the object. They were parsed once: where they are met again, comparing tells as much.
typedef struct {
    uint8_t bytes[64];
    uint32_t length;
    uint32_t beyond;  // bits of the first 32 bytes that lie behind it
    struct Key *key;
} Joint;

// What was met in one place.
typedef struct {
    Joint joints[JOINTS];
    const Joint *last;
    uint32_t count;
} Joints;

typedef struct Key {
    const uint8_t *bytes;  // with its quotes
    uint32_t length;
    Field field;
    uint64_t event;  // the last one that had it
    uint64_t first;  // and the first one, with its category
    int32_t category;
    Cells cells[KINDS];
    Table texts, jsons;
    Joints after;     // its value
    uint32_t digits;  // of its last integer
} Key;

// The keys of one level: of events, or of their arguments.
typedef struct {
    Table names;
    Key *keys[MOST_KEYS];
} Keys;

// A pid, tid or flow id: an integer, or a text by its code.
typedef enum { WHOLE, TEXT, NOTHING } IdKind;

typedef struct {
    IdKind kind;
    int64_t value;
} Id;

typedef struct {
    Id pid, tid;
} Thread;

typedef struct {
    Thread *threads;
    uint32_t count, kept, capacity;
    int32_t *slots;
    uint32_t mask;
    uint32_t last;  // the one that was asked for last
} Threads;

typedef struct {
    uint8_t phase;
    int32_t category, name, thread;
    int64_t start, duration, id;
} Row;

typedef struct {
    uint8_t *phase;
    int32_t *category, *name, *thread;
    int64_t *start, *duration, *id;
    uint32_t count, kept, capacity;
} Rows;

INLINE bool rows_add(Rows *rows, const Row *row) {
    if (UNLIKELY(rows->count == rows->capacity)) {
        uint32_t more = rows->capacity ? rows->capacity * 2 : 1 << 14;
        if (more > 1u << 30) return false;
#define GROW(column)                                                            \
    {                                                                           \
        void *grown = realloc(rows->column, (size_t)more * sizeof *rows->column); \
        if (!grown) return false;                                               \
        rows->column = grown;                                                   \
    }
        GROW(phase)
        GROW(category)
        GROW(name)
        GROW(thread)
        GROW(start)
        GROW(duration)
        GROW(id)
#undef GROW
        rows->capacity = more;
    }
    uint32_t at = rows->count++;
    rows->phase[at] = row->phase;
    rows->category[at] = row->category;
    rows->name[at] = row->name;
    rows->thread[at] = row->thread;
    rows->start[at] = row->start;
    rows->duration[at] = row->duration;
    rows->id[at] = row->id;
    return true;
}

static void rows_free(Rows *rows) {
    free(rows->phase);
    free(rows->category);
    free(rows->name);
    free(rows->thread);
    free(rows->start);
    free(rows->duration);
    free(rows->id);
    *rows = (Rows){0};
}

static inline size_t cell_size(Kind kind) { return kind < TEXTS ? sizeof(int64_t) : sizeof(int32_t); }

APART bool cells_grow(Cells *cells, size_t size) {
    if (cells->capacity > UINT32_MAX / 4) return false;
    uint32_t more = cells->capacity ? cells->capacity * 2 : 64;
    int32_t *rows = realloc(cells->rows, more * sizeof *rows);
    if (!rows) return false;
    cells->rows = rows;
    void *values = realloc(cells->values, more * size);
    if (!values) return false;
    cells->values = values;
    cells->capacity = more;
    return true;
}

static inline bool cells_add(Key *key, Kind kind, uint32_t row, const void *value) {
    Cells *cells = &key->cells[kind];
    size_t size = cell_size(kind);
    if (UNLIKELY(cells->count == cells->capacity) && !cells_grow(cells, size)) return false;
    uint32_t at = cells->count++;
    cells->rows[at] = (int32_t)row;
    memcpy((uint8_t *)cells->values + at * size, value, size);
    return true;
}

static void key_free(Key *key) {
    for (int kind = 0; kind < KINDS; kind++) {
        free(key->cells[kind].rows);
        free(key->cells[kind].values);
    }
    table_free(&key->texts);
    table_free(&key->jsons);
    free(key);
}

static void keys_free(Keys *keys) {
    for (int at = 0; at < MOST_KEYS; at++)
        if (keys->keys[at]) key_free(keys->keys[at]);
    memset(keys->keys, 0, sizeof keys->keys);
    table_free(&keys->names);
}

static Field field_of(const uint8_t *p, size_t n) {
    static const char *const names[] = {"ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "args"};
    for (int field = 0; field < OTHER; field++)
        if (strlen(names[field]) + 2 == n && !memcmp(names[field], p + 1, n - 2)) return (Field)field;
    return OTHER;
}

// The key whose name with its quotes is [p, p + n), added if it is new; UNSURE if there are too many.
static int keys_find(
    Keys *keys, Arena *arena, uint64_t seed, uint64_t event, int32_t category, const uint8_t *p, size_t n, Key **found
) {
    uint32_t known = keys->names.count;
    int32_t code;
    int status = table_code(&keys->names, arena, seed, p, n, &code);
    if (status) return status;
    if (code >= MOST_KEYS) return UNSURE;
    if ((uint32_t)code == known) {
        Key *key = calloc(1, sizeof(Key));
        if (!key) return NO_MEMORY;
        const Token *token = &keys->names.tokens[code];
        key->bytes = token->bytes;
        key->length = token->length;
        key->first = event;
        key->category = category;
        key->field = field_of(token->bytes, token->length);
        keys->keys[code] = key;
    }
    *found = keys->keys[code];
    return *found ? OK : NO_MEMORY;
}

static inline bool same_id(Id a, Id b) { return a.kind == b.kind && a.value == b.value; }

static uint32_t thread_hash(Thread thread, uint64_t seed) {
    uint64_t hash = mix(seed + (uint64_t)thread.pid.kind * 3 + (uint64_t)thread.tid.kind, (uint64_t)thread.pid.value);
    return (uint32_t)mix(hash, (uint64_t)thread.tid.value);
}

static bool threads_widen(Threads *threads, uint64_t seed) {
    uint32_t mask = threads->slots ? threads->mask * 2 + 1 : FIRST_SLOTS - 1;
    int32_t *slots = malloc((mask + (size_t)1) * sizeof(int32_t));
    if (!slots) return false;
    memset(slots, 0xff, (mask + (size_t)1) * sizeof(int32_t));
    for (uint32_t code = 0; code < threads->count; code++) {
        uint32_t at = thread_hash(threads->threads[code], seed) & mask;
        while (slots[at] >= 0) at = (at + 1) & mask;
        slots[at] = (int32_t)code;
    }
    free(threads->slots);
    threads->slots = slots;
    threads->mask = mask;
    return true;
}

static int thread_code(Threads *threads, uint64_t seed, Thread thread, int32_t *code) {
    if (LIKELY(threads->last < threads->count)) {
        const Thread *known = &threads->threads[threads->last];
        if (same_id(known->pid, thread.pid) && same_id(known->tid, thread.tid)) {
            *code = (int32_t)threads->last;
            return OK;
        }
    }
    if (!threads->slots && !threads_widen(threads, seed)) return NO_MEMORY;
    uint32_t at = thread_hash(thread, seed) & threads->mask;
    for (int probes = 0; threads->slots[at] >= 0; at = (at + 1) & threads->mask) {
        Thread *known = &threads->threads[threads->slots[at]];
        if (same_id(known->pid, thread.pid) && same_id(known->tid, thread.tid)) {
            threads->last = (uint32_t)(*code = threads->slots[at]);
            return OK;
        }
        if (++probes > MOST_PROBES) return UNSURE;
    }
    if (threads->count >= MOST_THREADS) return UNSURE;
    if (!reserve((void **)&threads->threads, threads->count, &threads->capacity, sizeof(Thread), 16)) return NO_MEMORY;
    threads->slots[at] = *code = (int32_t)threads->count;
    threads->threads[threads->count++] = thread;
    return threads->count > threads->mask / 2 && !threads_widen(threads, seed) ? NO_MEMORY : OK;
}

static void threads_free(Threads *threads) {
    free(threads->threads);
    free(threads->slots);
    *threads = (Threads){0};
}

#endif
