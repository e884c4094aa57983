#include "files/foreign_build.h"

#include "files/filter_file.h"
#include "files/new_filter.h"

static const struct foreign_layout *layout;
static const struct item_type *items;

static void parse_layout(const struct verb_option *option, const char *value) {
    layout = foreign_layout_named(value);
    if (!layout)
        fail("option --%s wants %s, not '%s'", option->name, foreign_names(),
             value);
}

const struct group layout_group = {
    "A filter for another program",
    {
        {0, "layout",
         "redisbloom|valkey-bloom|guava|spark|bits-and-blooms|dcso",
         "Make the filter that this program would make of the keys, with its "
         "size and its hashes. 'calyx check' and 'calyx info' read it, and "
         "'calyx convert --to LAYOUT' writes the file that the program reads. "
         "Of the other options, only those for keys, -n and -p go with it; "
         "without -n the lines are counted first.",
         parse_layout, NULL},
        {0, "items", "text|utf16|int32|int64",
         "With --layout: what the program makes of an item before it hashes "
         "it; 'calyx help convert' says more.",
         parse_items, &items},
    },
};

bool wants_foreign(void) {
    if (items && !layout) fail("option --items goes with --layout only");
    return layout != NULL;
}

static void expect_plain_options(void) {
    if (wanted.kind || wanted.hash || wanted.seed || wanted.comment ||
        wanted.memory || wanted.probes || wanted.growth > 0 || wanted.strict ||
        secret_key())
        fail("--layout %s says how the filter is made: only --keys, --rate and "
             "--items go with it, and the options for keys",
             layout->name);
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
    const uint64_t keys = wanted.keys ? wanted.keys : count_lines(count, files);
    struct foreign_file *const f = foreign_file_new(
        layout, items, keys ? keys : 1, wanted.rate > 0 ? wanted.rate : 0.01);
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
