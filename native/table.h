// Distinct tokens of JSON, numbered from 0 as they are met.
#ifndef TABLE_H
#define TABLE_H

#include "lanes.h"

typedef struct Chunk {
    struct Chunk *next;
    size_t used, capacity;
    uint8_t bytes[];
} Chunk;

// Bytes that stay where they are until all are freed; SPARE more can be read behind each piece.
typedef struct {
    Chunk *chunks;
    size_t total;
} Arena;

enum { CHUNK = 1 << 18, SPARE = 64 };

static uint8_t *arena_copy(Arena *arena, const uint8_t *p, size_t n) {
    Chunk *chunk = arena->chunks;
    if (!chunk || chunk->capacity - chunk->used < n) {
        size_t capacity = n > CHUNK ? n : CHUNK;
        chunk = malloc(sizeof(Chunk) + capacity + SPARE);
        if (!chunk) return NULL;
        memset(chunk->bytes + capacity, 0, SPARE);
        *chunk = (Chunk){arena->chunks, 0, capacity};
        arena->chunks = chunk;
        arena->total += capacity;
    }
    uint8_t *copy = chunk->bytes + chunk->used;
    memcpy(copy, p, n);
    chunk->used += n;
    return copy;
}

static void arena_free(Arena *arena) {
    while (arena->chunks) {
        Chunk *next = arena->chunks->next;
        free(arena->chunks);
        arena->chunks = next;
    }
    arena->total = 0;
}

typedef struct {
    const uint8_t *bytes;
    uint32_t length, hash;
} Token;

enum {
    FIRST_SLOTS = 64,
    MOST_PROBES = 256,  // a table that needs more has been attacked
};

typedef struct {
    Token *tokens;
    uint32_t count, capacity;
    uint32_t kept;  // tokens of blocks that were read whole
    int32_t *slots;
    uint32_t mask;
} Table;

static void table_free(Table *table) {
    free(table->tokens);
    free(table->slots);
    *table = (Table){0};
}

static bool table_open(Table *table) {
    table->slots = malloc(FIRST_SLOTS * sizeof(int32_t));
    if (!table->slots) return false;
    memset(table->slots, 0xff, FIRST_SLOTS * sizeof(int32_t));
    table->mask = FIRST_SLOTS - 1;
    return true;
}

static bool table_widen(Table *table) {
    if (table->mask >= 1u << 30) return false;
    uint32_t mask = table->mask * 2 + 1;
    int32_t *slots = malloc((mask + (size_t)1) * sizeof(int32_t));
    if (!slots) return false;
    memset(slots, 0xff, (mask + (size_t)1) * sizeof(int32_t));
    for (uint32_t code = 0; code < table->count; code++) {
        uint32_t at = table->tokens[code].hash & mask;
        while (slots[at] >= 0) at = (at + 1) & mask;
        slots[at] = (int32_t)code;
    }
    free(table->slots);
    table->slots = slots;
    table->mask = mask;
    return true;
}

// The code of the token [p, p + n) in an open table, -1 if it isn't there. Reads at least 64 bytes at p.
INLINE int32_t table_find(const Table *table, uint64_t seed, const uint8_t *p, size_t n) {
    uint32_t hash = hash_bytes(p, n, seed);
    uint32_t at = hash & table->mask;
    for (int probes = 0; table->slots[at] >= 0 && probes <= MOST_PROBES; probes++, at = (at + 1) & table->mask) {
        const Token *token = &table->tokens[table->slots[at]];
        if (token->hash != hash || token->length != n) continue;
        if (n <= 64 ? same64(token->bytes, p, n) : same_long(token->bytes, p, n)) return table->slots[at];
    }
    return -1;
}

// The code of the token [p, p + n), which is added if it is new.
APART int table_code(Table *table, Arena *arena, uint64_t seed, const uint8_t *p, size_t n, int32_t *code) {
    if (n > UINT32_MAX) return UNSURE;
    if (!table->slots && !table_open(table)) return NO_MEMORY;
    uint32_t hash = hash_bytes(p, n, seed);
    uint32_t at = hash & table->mask;
    for (int probes = 0; table->slots[at] >= 0; at = (at + 1) & table->mask) {
        const Token *token = &table->tokens[table->slots[at]];
        if (token->hash == hash && token->length == n && same(token->bytes, p, n)) {
            *code = table->slots[at];
            return OK;
        }
        if (++probes > MOST_PROBES) return UNSURE;
    }
    if (!reserve((void **)&table->tokens, table->count, &table->capacity, sizeof(Token), 64)) return NO_MEMORY;
    uint8_t *copy = arena_copy(arena, p, n);
    if (!copy) return NO_MEMORY;
    table->tokens[table->count] = (Token){copy, (uint32_t)n, hash};
    table->slots[at] = *code = (int32_t)table->count++;
    return table->count > table->mask / 4 && !table_widen(table) ? NO_MEMORY : OK;
}

#endif
