// A block of events to columns. The key that followed last time is tried first, and a text that was met lately is
// known by its first bytes: most of a trace is told by comparing, without a look at each byte.
#ifndef EVENTS_H
#define EVENTS_H

#include "columns.h"

enum { POSITIONS = 64, SHAPES = 256 };

typedef struct {
    uint64_t seed;
    Arena arena;      // tokens
    Arena key_names;  // keep their place when the tokens are forgotten
    Table categories, names, thread_ids, flow_ids;
    Keys own, inner;
    Threads threads;
    Rows rows;
    Rounding rounding;
    uint64_t events;
    uint32_t plain;  // events of the block without a category
    Key *own_guess[SHAPES][POSITIONS];    // by phase and position
    Key *inner_guess[SHAPES][POSITIONS];  // by category and position
} Reader;

// Moves on to the next member of an object or list; *more is false behind its end.
static inline int next_member(const uint8_t *p, const uint8_t *end, const uint8_t **behind, bool *more) {
    if (LIKELY(p[0] == ',' && p[1] == ' ' && p[2] > ' ')) {
        *behind = p + 2;
        return OK;
    }
    p = skip_blanks(p);
    if (*p == ',') {
        *behind = skip_blanks(p + 1);
        return OK;
    }
    if (*p != '}' || end - p < 2) return UNSURE;
    *more = false;
    *behind = p + 1;
    return OK;
}

static inline uint32_t first_bytes(const uint8_t *p) {
    return (uint32_t)(mix(load64(p), load64(p + 8)) >> 20) & (RECENT - 1);
}

// A text, list, object or word by its code.
static inline int read_token(
    Reader *reader, Table *table, const uint8_t *p, const uint8_t *end, const uint8_t **behind, int32_t *code
) {
    bool near_end = end - p < 16;
    uint32_t place = near_end ? 0 : first_bytes(p);
    if (LIKELY(!near_end && table->recent)) {
        int32_t recent = table->recent[place];
        if (LIKELY(recent >= 0)) {
            const Token *token = &table->tokens[recent];
            if (LIKELY((size_t)(end - p) > token->length && same(token->bytes, p, token->length))) {
                *behind = p + token->length;
                *code = recent;
                return OK;
            }
        }
    }
    int status = skip_value(p, end, behind, 0);
    if (status) return status;
    status = table_code(table, &reader->arena, reader->seed, p, (size_t)(*behind - p), code);
    if (!status && !near_end) table->recent[place] = *code;
    return status;
}

static int read_key(
    Reader *reader, Keys *keys, int32_t category, Key **guess, const uint8_t *p, const uint8_t *end,
    const uint8_t **behind, Key **found
) {
    Key *key = *guess;
    if (LIKELY(key && (size_t)(end - p) > key->length && same(key->bytes, p, key->length))) {
        p += key->length;
    } else {
        const uint8_t *begin = p;
        bool escapes;
        if (*p != '"') return UNSURE;
        int status = skip_text(p, end, &p, &escapes);
        if (status) return status;
        if (escapes) return UNSURE;
        status = keys_find(
            keys, &reader->key_names, reader->seed, reader->events, category, begin, (size_t)(p - begin), &key
        );
        if (status) return status;
        *guess = key;
    }
    p = skip_blanks(p);
    if (*p != ':') return UNSURE;
    *behind = skip_blanks(p + 1);
    *found = key;
    if (UNLIKELY(key->event == reader->events)) return UNSURE;  // a key twice
    key->event = reader->events;
    return OK;
}

static int read_cell(Reader *reader, Key *key, const uint8_t *p, const uint8_t *end, const uint8_t **behind) {
    uint32_t row = reader->rows.count;
    int32_t code;
    if (*p == '-' || is_digit(*p)) {
        int64_t whole = 0;
        double value;
        bool fraction;
        int status = read_integer(p, behind, &whole, &fraction);
        if (status) return status;
        if (!fraction) return cells_add(key, INTEGERS, row, &whole) ? OK : NO_MEMORY;
        status = read_double(p, *behind, &value);
        if (status) return status;
        return cells_add(key, DOUBLES, row, &value) ? OK : NO_MEMORY;
    }
    if (*p == 'n') return skip_word(p, end, behind);
    Kind kind = *p == '"' ? TEXTS : JSONS;
    int status = read_token(reader, kind == TEXTS ? &key->texts : &key->jsons, p, end, behind, &code);
    if (status) return status;
    return cells_add(key, kind, row, &code) ? OK : NO_MEMORY;
}

static int read_arguments(Reader *reader, int32_t category, const uint8_t *p, const uint8_t *end, const uint8_t **behind) {
    if (*p == 'n') return skip_word(p, end, behind);
    if (*p != '{') return UNSURE;
    p = skip_blanks(p + 1);
    bool more = *p != '}';
    if (!more) {
        if (end - p < 2) return UNSURE;
        *behind = p + 1;
        return OK;
    }
    Key **guesses = reader->inner_guess[(uint32_t)(category + 1) % SHAPES];
    for (int at = 0; more; at += at < POSITIONS - 1) {
        Key *key;
        int status = read_key(reader, &reader->inner, category, &guesses[at], p, end, &p, &key);
        // "@" marks the columns of keys beside the arguments.
        if (LIKELY(!status) && UNLIKELY(key->bytes[1] == '@')) status = UNSURE;
        if (LIKELY(!status)) status = read_cell(reader, key, p, end, &p);
        if (LIKELY(!status)) status = next_member(p, end, &p, &more);
        if (UNLIKELY(status)) return status;
    }
    *behind = p;
    return OK;
}

static int read_text_field(
    Reader *reader, Table *table, const uint8_t *p, const uint8_t *end, const uint8_t **behind, int32_t *code
) {
    if (*p == '"') return read_token(reader, table, p, end, behind, code);
    return *p == 'n' ? skip_word(p, end, behind) : UNSURE;
}

static int read_id(Reader *reader, Table *table, const uint8_t *p, const uint8_t *end, const uint8_t **behind, Id *id) {
    if (*p == '"') {
        int32_t code;
        int status = read_token(reader, table, p, end, behind, &code);
        if (!status) *id = (Id){TEXT, code};
        return status;
    }
    if (*p == 'n') return skip_word(p, end, behind);
    bool fraction = false;
    int status = read_integer(p, behind, &id->value, &fraction);
    id->kind = WHOLE;
    return status ? status : fraction ? UNSURE : OK;
}

static int read_time_field(Reader *reader, const uint8_t *p, const uint8_t *end, const uint8_t **behind, int64_t *ns) {
    return UNLIKELY(*p == 'n') ? skip_word(p, end, behind) : read_time(p, behind, ns, &reader->rounding);
}

static int read_phase(const uint8_t *p, const uint8_t *end, const uint8_t **behind, uint8_t *phase) {
    if (end - p < 4 || p[0] != '"' || p[2] != '"') return UNSURE;
    if (p[1] < ' ' || p[1] >= 0x7f || p[1] == '"' || p[1] == '\\') return UNSURE;
    *phase = p[1];
    *behind = p + 3;
    return OK;
}

static inline int read_field(
    Reader *reader, Key *key, Row *row, Thread *thread, Id *id, const uint8_t *p, const uint8_t *end, const uint8_t **behind
) {
    switch (key->field) {
        case PHASE: return read_phase(p, end, behind, &row->phase);
        case CATEGORY: return read_text_field(reader, &reader->categories, p, end, behind, &row->category);
        case NAME: return read_text_field(reader, &reader->names, p, end, behind, &row->name);
        case PID: return read_id(reader, &reader->thread_ids, p, end, behind, &thread->pid);
        case TID: return read_id(reader, &reader->thread_ids, p, end, behind, &thread->tid);
        case ID: return read_id(reader, &reader->flow_ids, p, end, behind, id);
        case TIME: return read_time_field(reader, p, end, behind, &row->start);
        case DURATION: return read_time_field(reader, p, end, behind, &row->duration);
        case ARGUMENTS: return read_arguments(reader, row->category, p, end, behind);
        case OTHER: break;
    }
    return read_cell(reader, key, p, end, behind);
}

// p behind the opening brace of an event.
static int read_event(Reader *reader, const uint8_t *p, const uint8_t *end, const uint8_t **behind) {
    Row row = {0, NO_CODE, NO_CODE, 0, ABSENT, ABSENT, ABSENT};
    Thread thread = {{NOTHING, 0}, {NOTHING, 0}};
    Id id = {NOTHING, ABSENT};
    bool more = true;
    reader->events++;
    p = skip_blanks(p);
    for (int at = 0; more; at += at < POSITIONS - 1) {
        Key *key;
        Key **guess = &reader->own_guess[row.phase][at];
        int status = read_key(reader, &reader->own, row.category, guess, p, end, &p, &key);
        if (LIKELY(!status)) status = read_field(reader, key, &row, &thread, &id, p, end, &p);
        if (LIKELY(!status)) status = next_member(p, end, &p, &more);
        if (UNLIKELY(status)) return status;
    }
    *behind = p;
    reader->plain += row.category == NO_CODE;
    row.id = id.kind == TEXT ? FIRST_TEXT_ID + id.value : id.value;
    int status = thread_code(&reader->threads, reader->seed, thread, &row.thread);
    if (status) return status;
    return rows_add(&reader->rows, &row) ? OK : NO_MEMORY;
}

// The array of events [p, end), brackets included.
static int read_events(Reader *reader, const uint8_t *p, const uint8_t *end) {
    if (end - p < 2 || *p != '[' || end[-1] != ']') return UNSURE;
    p = skip_blanks(p + 1);
    if (*p == ']') return p + 1 == end ? OK : UNSURE;
    for (;;) {
        if (*p != '{') return UNSURE;
        int status = read_event(reader, p + 1, end, &p);
        if (UNLIKELY(status)) return status;
        p = skip_blanks(p);
        if (*p == ']') return p + 1 == end ? OK : UNSURE;
        if (*p != ',') return UNSURE;
        p = skip_blanks(p + 1);
    }
}

#endif
