// The C interface: blocks of events in, columns out. Whoever calls it copies what it points to before the next call.
// Readers share nothing, so that each may be used by a thread of its own.
//
//     reader_new          an empty reader, NULL if there is no memory
//     reader_add          reads a block whole or not at all
//     reader_add_all      reads blocks up to the first that it does not read
//     reader_threads, reader_cells, reader_tokens
//                         what was read since the last reader_clear
//     reader_take_rows, reader_take_cells
//                         copies that with the caller's codes of texts
//     reader_clear        forgets rows and cells; codes stay valid
//     reader_forget       forgets codes too; after each block that was not read
//     reader_nest         which intervals contain which
//     reader_arrange, reader_nest_lane, reader_changes, reader_enclosing
//                         the call tree of slices, and what runs when
//     reader_say_crash    what a crash of the reader is to say before it ends the process
//
// All text is hostile. Reads are bounded by the block's end, allocations are checked, and where the reader is not
// sure that it would come to what the caller's own decoder makes of a block, it leaves the block to that one.

#include "crash.h"
#include "events.h"
#include "nest.h"
#include "tree.h"

#if defined(_WIN32)
#define API __declspec(dllexport)
#else
#define API __attribute__((visibility("default")))
#endif

enum { ABI = 8, MOST_KEY_BYTES = 1 << 20 };

typedef enum { CATEGORIES, NAMES, THREAD_IDS, FLOW_IDS } SharedTable;

// Sizes after a block: rows not yet cleared, tokens of the two tables and keys of the two levels, of which the order
// matters, events of the block without a category, whether times are rounded as decimals from now on, whether one of
// the block was rounded as a double, bytes held for tokens.
typedef struct {
    uint32_t rows, categories, names, own, inner, plain, decimals, rounded;
    uint64_t bytes;
} Sizes;

API uint32_t reader_abi(void) { return ABI; }

API Reader *reader_new(uint64_t seed) {
    Reader *reader = calloc(1, sizeof(Reader));
    if (reader) reader->seed = seed;
    return reader;
}

static void forget_keys(Reader *reader) {
    keys_free(&reader->own);
    keys_free(&reader->inner);
    memset(&reader->thread, 0, sizeof reader->thread);
    memset(&reader->own_first, 0, sizeof reader->own_first);
    memset(reader->inner_first, 0, sizeof reader->inner_first);
    arena_free(&reader->key_names);
}

static void forget_tokens(Reader *reader) {
    table_free(&reader->categories);
    table_free(&reader->names);
    table_free(&reader->thread_ids);
    table_free(&reader->flow_ids);
    threads_free(&reader->threads);
    for (int at = 0; at < MOST_KEYS; at++) {
        Key *both[] = {reader->own.keys[at], reader->inner.keys[at]};
        for (int level = 0; level < 2; level++)
            if (both[level]) {
                table_free(&both[level]->texts);
                table_free(&both[level]->jsons);
            }
    }
    arena_free(&reader->arena);
}

API void reader_free(Reader *reader) {
    if (!reader) return;
    forget_tokens(reader);
    forget_keys(reader);
    rows_free(&reader->rows);
    free(reader);
}

// A step for each count and what is kept of it: either all of the block is kept, or nothing.
static void settle(uint32_t *count, uint32_t *kept, bool whole) {
    if (whole)
        *kept = *count;
    else
        *count = *kept;
}

static void settle_key(Key *key, bool whole) {
    for (int kind = 0; kind < KINDS; kind++) settle(&key->cells[kind].count, &key->cells[kind].kept, whole);
    if (!whole) return;  // tokens of the block stay in their tables until they are forgotten
    key->texts.kept = key->texts.count;
    key->jsons.kept = key->jsons.count;
}

static void settle_keys(Keys *keys, bool whole) {
    for (int at = 0; at < MOST_KEYS && keys->keys[at]; at++) settle_key(keys->keys[at], whole);
}

static uint32_t keys_count(const Keys *keys) {
    return keys->names.count < MOST_KEYS ? keys->names.count : MOST_KEYS;
}

API int reader_add(Reader *reader, const uint8_t *block, size_t length, Sizes *sizes) {
    Rounding before = reader->rounding;
    reader->rounding.rounded = false;
    reader->plain = 0;
    begin_reading();
    int status = read_events(reader, block, block + length);
    end_reading();
    bool whole = status == OK;
    settle(&reader->rows.count, &reader->rows.kept, whole);
    settle_keys(&reader->own, whole);
    settle_keys(&reader->inner, whole);
    if (whole) {
        Table *tables[] = {&reader->categories, &reader->names, &reader->thread_ids, &reader->flow_ids};
        for (int at = 0; at < 4; at++) tables[at]->kept = tables[at]->count;
        reader->threads.kept = reader->threads.count;
    } else {
        reader->rounding = before;
    }
    *sizes = (Sizes){
        reader->rows.count,
        reader->categories.kept,
        reader->names.kept,
        keys_count(&reader->own),
        keys_count(&reader->inner),
        reader->plain,
        reader->rounding.decimals,
        reader->rounding.rounded,
        reader->arena.total,
    };
    return status;
}

typedef struct {
    const uint8_t *bytes;
    uint64_t length;
} Block;

// Sizes after each block that was read, and how many those are; *status is that of the last block that was tried.
API uint32_t reader_add_all(Reader *reader, const Block *blocks, uint32_t count, Sizes *sizes, int32_t *status) {
    *status = OK;
    for (uint32_t at = 0; at < count; at++) {
        *status = reader_add(reader, blocks[at].bytes, (size_t)blocks[at].length, &sizes[at]);
        if (*status) return at;
    }
    return count;
}

// Says `message` on standard error should the reader crash; the process then ends as it would have.
API void reader_say_crash(const char *message) { say_crash(message); }

// From now on times are rounded as decimals.
API void reader_use_decimals(Reader *reader) { reader->rounding.decimals = true; }

// The caller's codes of the reader's first n codes.
typedef struct {
    const int32_t *codes;
    uint64_t count;
} CodeMap;

static inline int32_t translate(CodeMap map, int64_t code) {
    return code >= 0 && (uint64_t)code < map.count ? map.codes[code] : NO_CODE;
}

// Where the columns of events go: room for each row.
typedef struct {
    uint8_t *phase;
    int32_t *category, *name, *thread;
    int64_t *start, *duration, *id;
} RowPlaces;

// Copies all rows; `maps` are those of categories, names, threads and flow ids.
API void reader_take_rows(const Reader *reader, const RowPlaces *places, const CodeMap *maps) {
    const Rows *rows = &reader->rows;
    CodeMap categories = maps[0], names = maps[1], threads = maps[2], flows = maps[3];
    size_t count = rows->count;
    if (!count) return;
    memcpy(places->phase, rows->phase, count);
    memcpy(places->start, rows->start, count * sizeof(int64_t));
    memcpy(places->duration, rows->duration, count * sizeof(int64_t));
    for (size_t at = 0; at < count; at++) {
        places->category[at] = translate(categories, rows->category[at]);
        places->name[at] = translate(names, rows->name[at]);
        places->thread[at] = translate(threads, rows->thread[at]);
        int64_t id = rows->id[at], text = id - FIRST_TEXT_ID;
        bool is_text = id >= FIRST_TEXT_ID && id < 0 && (uint64_t)text < flows.count;
        places->id[at] = is_text ? FIRST_TEXT_ID + flows.codes[text] : id;
    }
}

// For each thread four int64: the kind and value of its pid, then of its tid.
API uint32_t reader_threads(const Reader *reader, uint32_t from, int64_t *out) {
    const Threads *threads = &reader->threads;
    if (out)
        for (uint32_t at = from; at < threads->kept; at++) {
            const Thread *thread = &threads->threads[at];
            int64_t fields[] = {thread->pid.kind, thread->pid.value, thread->tid.kind, thread->tid.value};
            memcpy(out + 4 * (size_t)(at - from), fields, sizeof fields);
        }
    return threads->kept;
}

static const Key *key_at(const Reader *reader, uint32_t inner, uint32_t at) {
    return at < MOST_KEYS ? (inner ? &reader->inner : &reader->own)->keys[at] : NULL;
}

// The key's name as JSON, and the number and category of the event that it was met in; returns the length of the
// name, 0 for the fields of events, which have columns of their own.
API uint32_t reader_key(
    const Reader *reader, uint32_t inner, uint32_t at, const uint8_t **bytes, uint64_t *event, int32_t *category
) {
    const Key *key = key_at(reader, inner, at);
    if (!key || (!inner && key->field != OTHER)) return 0;
    *event = key->first;
    *category = key->category;
    *bytes = key->bytes;
    return key->length;
}

// Of each of the first `keys` keys: how many cells it has of each kind, and how many texts and other JSON values.
API void reader_cells(const Reader *reader, uint32_t inner, uint32_t keys, uint32_t *counts) {
    for (uint32_t at = 0; at < keys; at++) {
        const Key *key = key_at(reader, inner, at);
        for (int kind = 0; kind < KINDS; kind++) *counts++ = key ? key->cells[kind].count : 0;
        *counts++ = key ? key->texts.kept : 0;
        *counts++ = key ? key->jsons.kept : 0;
    }
}

// Copies the cells of one kind of a key: their rows, which follow `first`, and their values, of which codes are
// translated.
API void reader_take_cells(
    const Reader *reader, uint32_t inner, uint32_t at, uint32_t kind, int32_t first, const CodeMap *map, int32_t *rows,
    void *values
) {
    const Key *key = key_at(reader, inner, at);
    if (!key || kind >= KINDS) return;
    const Cells *cells = &key->cells[kind];
    for (size_t cell = 0; cell < cells->count; cell++) rows[cell] = (int32_t)((uint32_t)first + (uint32_t)cells->rows[cell]);
    if (kind < TEXTS) {
        if (cells->count) memcpy(values, cells->values, cells->count * cell_size((Kind)kind));
        return;
    }
    const int32_t *codes = cells->values;
    for (size_t cell = 0; cell < cells->count; cell++) ((int32_t *)values)[cell] = translate(*map, codes[cell]);
}

static uint32_t tokens(const Table *table, uint32_t from, uint8_t *out, uint64_t *bytes) {
    *bytes = 2;
    if (out) *out++ = '[';
    for (uint32_t at = from; at < table->kept; at++) {
        const Token *token = &table->tokens[at];
        *bytes += token->length + (at > from);
        if (!out) continue;
        if (at > from) *out++ = ',';
        memcpy(out, token->bytes, token->length);
        out += token->length;
    }
    if (out) *out = ']';
    return table->kept;
}

// The tokens of a shared table from number `from` on as a JSON array: its size, and the array if `out` is not NULL.
API uint32_t reader_tokens(const Reader *reader, uint32_t table, uint32_t from, uint8_t *out, uint64_t *bytes) {
    const Table *tables[] = {&reader->categories, &reader->names, &reader->thread_ids, &reader->flow_ids};
    return tokens(tables[table < 4 ? table : 0], from, out, bytes);
}

// The same of the texts or of the other JSON values of a key.
API uint32_t reader_key_tokens(
    const Reader *reader, uint32_t inner, uint32_t at, uint32_t kind, uint32_t from, uint8_t *out, uint64_t *bytes
) {
    static const Table none = {0};
    const Key *key = key_at(reader, inner, at);
    return tokens(!key ? &none : kind == TEXTS ? &key->texts : &key->jsons, from, out, bytes);
}

API void reader_clear(Reader *reader) {
    reader->rows.count = reader->rows.kept = 0;
    for (uint32_t inner = 0; inner < 2; inner++)
        for (uint32_t at = 0; at < MOST_KEYS; at++) {
            Key *key = (inner ? &reader->inner : &reader->own)->keys[at];
            for (int kind = 0; key && kind < KINDS; kind++) key->cells[kind].count = key->cells[kind].kept = 0;
        }
}

API void reader_forget(Reader *reader) {
    reader_clear(reader);
    forget_tokens(reader);
    bool many = reader->own.names.count >= MOST_KEYS || reader->inner.names.count >= MOST_KEYS;
    if (many || reader->key_names.total > MOST_KEY_BYTES) forget_keys(reader);
}

API void reader_nest(
    const int64_t *begin, const int64_t *finish, size_t count, int64_t *parent, int64_t *depth, uint8_t *fits,
    int64_t *open
) {
    nest(begin, finish, count, parent, depth, fits, open);
}

API int reader_arrange(
    const int32_t *rows, size_t count, const int64_t *start, const int64_t *finish, const int32_t *thread, size_t events,
    size_t threads, Slice *slices, Slice *spare, size_t *next
) {
    return arrange(rows, count, start, finish, thread, events, threads, slices, spare, next);
}

API size_t reader_nest_lane(
    Slice *slices, size_t count, int32_t number, int32_t *parent, int32_t *depth, int32_t *lane, int32_t *nested,
    Slice *open
) {
    return nest_lane(slices, count, number, parent, depth, lane, nested, open);
}

API size_t reader_changes(
    const int32_t *rows, size_t count, const int64_t *start, const int64_t *finish, const int32_t *parent, size_t events,
    int64_t *times, int32_t *running, int32_t *open
) {
    return changes(rows, count, start, finish, parent, events, times, running, open);
}

API void reader_enclosing(
    const int32_t *rows, size_t count, const int32_t *parent, const uint8_t *is_operator, size_t events, int32_t *around
) {
    enclosing(rows, count, parent, is_operator, events, around);
}
