#include "files/foreign_build.h"

#include "files/filter_file.h"
#include "files/new_filter.h"

static struct foreign_choice choice;
static const struct item_type *items;

const struct group layout_group = {
    "A filter for another program",
    {
        {0, "layout", LAYOUTS,
         "Make the filter that this program would make of the keys, with its "
         "size and its hashes. 'calyx check' and 'calyx info' read it, and "
         "'calyx convert --to LAYOUT' writes the file that the program reads. "
         "Of the other options, only those for keys, -n and -p go with it; "
         "without -n the lines are counted first. LAYOUT may also be a line, "
         "such as 'murmur3-32 seeds 41..47 mod 5000000 msb', for the bits of a "
         "tutorial or of a program of your own: a hash, how a key gets its "
         "numbers, how they become positions, and where a bit lies; OTHERS.md "
         "has the grammar. A line says its size: -n and -p do not go with it.",
         parse_layout, &choice},
        {0, "items", ITEM_TYPES,
         "With --layout: what the program makes of an item before it hashes "
         "it; 'calyx help convert' says more.",
         parse_items, &items},
    },
};

bool foreign_counts_first(void) {
    return !wanted.keys && !choice.line.hash;
}

bool wants_foreign(void) {
    if (items && !choice.layout) fail("option --items goes with --layout only");
    return choice.layout != NULL;
}

static void expect_plain_options(void) {
    if (wanted.kind || wanted.hash || wanted.seed || wanted.comment ||
        has_size() || wanted.probes || wanted.growth > 0 || wanted.strict ||
        secret_key())
        fail("--layout %s says how the filter is made: only --keys, --rate and "
             "--items go with it, and the options for keys",
             choice.layout->name);
    if (choice.line.hash && (wanted.keys || wanted.rate > 0))
        fail("--layout '%s' says how large the filter is: --keys and --rate do "
             "not go with it",
             choice.line.text);
}

static bool add_block(struct text_block *block, struct key_batch *batch) {
    batch_start(batch, block);
    while (batch_next(batch, block)) {
        foreign_file_add_many(block->context, batch->keys, batch->count);
        block->lines += batch->count;
    }
    return true;
}

struct foreign_file *foreign_build(int count, char **files,
                                   struct input_totals *totals) {
    expect_plain_options();
    uint64_t keys = wanted.keys;
    if (foreign_counts_first()) keys = count_lines(count, files);
    struct foreign_file *const f = foreign_file_new(
        &choice, items, keys ? keys : 1, wanted.rate > 0 ? wanted.rate : 0.01);
    const struct stages stages = {.in_order = add_block, .context = f};
    *totals = run_pipeline(&stages, count, files);
    return f;
}

void foreign_report(const struct foreign_file *f,
                    const struct input_totals *totals) {
    const struct foreign_facts facts = foreign_file_describe(f);
    const struct figure figures[] = {
        {"keys", (double)totals->lines, true},
        {"filter_bytes", (double)facts.bits / 8, true},
        {"expected_rate", facts.rate_now, false},
    };
    if (facts.note) warn("%s", facts.note);
    report(totals, figures, sizeof figures / sizeof *figures);
}
