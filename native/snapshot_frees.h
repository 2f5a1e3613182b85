// Which allocation each free of the history ends, found in one pass with a table of addresses.
#ifndef SNAPSHOT_FREES_H
#define SNAPSHOT_FREES_H

#include "snapshot_rows.h"

// In the column of frees: no allocation ends here; one that is older than the history ends here.
enum { NO_FREE = -1, FREES_OLDER = -2 };
enum { UNSEEN = 0, IS_FREE = UINT32_MAX };
enum { ROW_ALLOC = 0, ROW_FREE_REQUESTED = 1, ROW_FREE_COMPLETED = 6 };  // as in ACTIONS

// slots: address -> row of its living allocation + 1, IS_FREE once that ended, UNSEEN if the slot is empty.
typedef struct {
    int64_t *addresses;
    uint32_t *rows;
    uint64_t mask, count;
} AddressTable;

static uint64_t address_slot(const AddressTable *table, uint64_t seed, int64_t address) {
    uint64_t at = mix(seed, (uint64_t)address) & table->mask;
    while (table->rows[at] != UNSEEN && table->addresses[at] != address) at = (at + 1) & table->mask;
    return at;
}

static bool resize_addresses(Budget *budget, AddressTable *table, uint64_t seed, uint64_t size) {
    AddressTable grown = {NULL, NULL, size - 1, table->count};
    uint64_t bytes = size * (sizeof *grown.addresses + sizeof *grown.rows);
    if (budget->used + bytes > budget->limit) return false;
    grown.addresses = malloc((size_t)(size * sizeof *grown.addresses));
    grown.rows = calloc((size_t)size, sizeof *grown.rows);
    bool made = grown.addresses && grown.rows;
    if (made) {
        for (uint64_t i = 0; table->rows && i <= table->mask; i++) {
            if (table->rows[i] == UNSEEN) continue;
            uint64_t at = address_slot(&grown, seed, table->addresses[i]);
            grown.addresses[at] = table->addresses[i];
            grown.rows[at] = table->rows[i];
        }
    }
    AddressTable former = made ? *table : grown;
    if (made) *table = grown;
    free(former.addresses);
    free(former.rows);
    return made;
}

// Matches the entries begin to end, which belong to one device.
static bool match_device(Reader *r, AddressTable *table, uint64_t begin, uint64_t end) {
    for (uint64_t row = begin; row < end; row++) {
        uint8_t action = r->action[row];
        bool frees = action == ROW_FREE_REQUESTED || action == ROW_FREE_COMPLETED;
        if (action != ROW_ALLOC && !frees) continue;
        int64_t address = r->address[row];
        if (address == ABSENT) {
            if (action == ROW_FREE_REQUESTED) r->freed[row] = FREES_OLDER;
            continue;
        }
        if (UNLIKELY(table->count * 2 >= table->mask) && !resize_addresses(&r->budget, table, r->seed, (table->mask + 1) * 2)) return false;
        uint64_t at = address_slot(table, r->seed, address);
        uint32_t seen = table->rows[at];
        if (seen == UNSEEN) table->addresses[at] = address, table->count++;
        if (frees && seen != IS_FREE) r->freed[row] = seen == UNSEEN ? FREES_OLDER : (int32_t)(seen - 1);
        table->rows[at] = frees ? IS_FREE : (uint32_t)row + 1;
    }
    return true;
}

// Fills the column of frees; false, and no column, if there is no memory for it.
static bool match_frees(Reader *r) {
    if (!r->rows || r->budget.used + r->rows * sizeof *r->freed > r->budget.limit) return false;
    r->freed = malloc((size_t)(r->rows * sizeof *r->freed));
    if (!r->freed) return false;
    for (uint64_t row = 0; row < r->rows; row++) r->freed[row] = NO_FREE;
    uint64_t done = 0;  // a history that repeats entries of an earlier one is not read twice
    bool matched = true;
    for (uint64_t i = 0; i < r->parts.count && matched; i++) {
        const Part *part = &r->parts.items[i];
        if (part->begin < done) continue;
        AddressTable table = {0};
        matched = resize_addresses(&r->budget, &table, r->seed, 1024) && match_device(r, &table, part->begin, part->end);
        free(table.addresses);
        free(table.rows);
        done = part->end;
    }
    if (matched) return true;
    free(r->freed);
    r->freed = NULL;
    return false;
}

#endif
