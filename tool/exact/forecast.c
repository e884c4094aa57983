/*
 * How the exact engine divides its memory, and how much a partition will spill.
 */
#include "exact/key_engine.h"

/* ---- Shares of the memory ------------------------------------------------ */

uint64_t memory_of_keys(const struct set_operation *op, uint64_t memory) {
    return memory / 8 * (some_only_read(op) ? 6 : 7);
}

uint64_t keys_of_lines(const struct set_operation *op, uint64_t memory,
                       uint64_t lines) {
    const uint64_t most = memory_of_keys(op, memory) / 96;
    return lines < most ? lines : most;
}

size_t tally_size(const struct set_operation *op) {
    return op->tallies ? sizeof(struct tally) : 0;
}

uint64_t memory_of_spilled_keys(uint64_t memory) {
    return memory < 8192 ? 1024 : memory / 8;
}

size_t memory_of_spill(uint64_t memory, unsigned spills) {
    const uint64_t share = memory / 8 / spills;
    return share < 4096 ? 4096 : share > 1 << 18 ? 1 << 18 : (size_t)share;
}

/* Enough that each spill fits, with a margin; a power of two. */
unsigned spills_for(const struct set_operation *op, uint64_t memory,
                    uint64_t bytes) {
    unsigned n = 8;
    while (n < MOST_SPILLS && n * memory_of_keys(op, memory) / 4 < bytes)
        n *= 2;
    return bytes ? n : 32;
}

/* ---- Forecasts ----------------------------------------------------------- */

double record_size(const struct line_counts *counts, bool has_line) {
    const double key = counts->distinct_key_size;
    return 3.3 + (key < 128 ? 0 : 1) + key +
           (has_line ? counts->distinct_size : 0);
}

/* A spill that fits into its buffer is not written. */
static double written(double bytes, double spills, double buffer) {
    return bytes / spills < buffer ? 0 : bytes;
}

double partition_spills(const struct set_operation *op,
                        const struct partition_forecast *f, unsigned level) {
    enum { DEEPEST = 8 };
    if (f->keys <= f->capacity || level > DEEPEST) return 0;
    const double left = 1 - f->capacity / f->keys;
    const double bytes = left * f->lines * f->record;
    const unsigned spills = spills_for(op, f->memory, f->expected);
    const double buffer = (double)memory_of_spill(f->memory, spills);
    const uint64_t workers = level == 0 && thread_count() > 1 ? 2 : 1;
    const uint64_t memory = f->memory / workers;
    const struct partition_forecast next = {
        .keys = left * f->keys / spills,
        .lines = left * f->lines / spills,
        .record = f->record,
        .memory = memory,
        .capacity = (double)key_table_capacity(
            keys_of_lines(op, memory, (uint64_t)(left * f->lines / spills)),
            memory_of_keys(op, memory),
            f->record - 3 + stored_key_size(tally_size(op))),
        .expected = (uint64_t)(bytes / spills)};
    return written(bytes, spills, buffer) +
           spills * partition_spills(op, &next, level + 1);
}
