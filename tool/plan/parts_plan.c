#include "plan/parts_plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "exact/spill.h"
#include "files/hash_writer.h"
#include "frame/json.h"
#include "frame/memory_left.h"
#include "plan/phase_speed.h"
#include "wire/hash_file.h"

/* ---- Options ------------------------------------------------------------- */

enum { AUTO = -1, PART_HEADS = 128 + 4096 /* bytes before its body */ };

static int64_t wanted_parts; /* 0: no plan of parts */
static uint64_t nodes = 1, cores = 1, node_memory, disk, network, input_bytes;
static bool calibrates;

static void parse_plan_parts(const struct verb_option *o, const char *value) {
    uint64_t number;
    if (strcmp(value, "auto") == 0) {
        wanted_parts = AUTO;
        return;
    }
    if (!count_from(value, &number) || number < 1 || number > CALYX_PARTS_MOST)
        fail("--%s: expected a number from 1 to %d, or auto, found '%s'",
             o->name, CALYX_PARTS_MOST, value);
    wanted_parts = (int64_t)number;
}

static void parse_nodes(const struct verb_option *o, const char *value) {
    if (!count_from(value, o->into) || *(uint64_t *)o->into < 1 ||
        *(uint64_t *)o->into > CALYX_PARTS_MOST)
        fail("--%s: expected a number from 1 to %d, found '%s'", o->name,
             CALYX_PARTS_MOST, value);
}

const struct group nodes_group = {
    "Many machines",
    {
        {0, "parts", "N",
         "Show what it takes to build the filter in N parts, at most 65536, by "
         "'calyx hash', 'build --part' and 'join'. With 'auto', N is the least "
         "multiple of all cores whose parts fit into the memory of the nodes.",
         parse_plan_parts, NULL},
        {0, "nodes", "N", "On N machines; the default is 1.", parse_nodes,
         &nodes},
        {0, "node-cores", "N",
         "Each runs N commands at a time, of one thread each; the default is "
         "1.",
         parse_nodes, &cores},
        {0, "node-memory", "SIZE",
         "Each has SIZE of memory, of which parts take 80 %. The default is "
         "what is free here.",
         parse_size, &node_memory},
        {0, "disk", "SIZE",
         "Each has SIZE of disk: fail if hashes and parts need more.",
         parse_size, &disk},
        {0, "network", "BITS",
         "Each sends and receives BITS a second, such as 10G, and hashes move "
         "from where they were written to where their part is built. Without "
         "it, nodes share a file system, and time to move is not counted.",
         parse_positive, &network},
        {0, "input", "SIZE",
         "All lists together have SIZE, uncompressed. The default is --keys "
         "lines of --key-bytes and a line end.",
         parse_size, &input_bytes},
        {0, "calibrate", NULL,
         "Measure how fast each command is, here and now, in some seconds, and "
         "compute the times from it. Otherwise they are the figures of a "
         "server of "
         "2023.",
         parse_flag, &calibrates},
        {'T', "temporary", "FOLDER",
         "Measure with files in FOLDER, such as one on the disk of the "
         "cluster; the default is $TMPDIR, or /tmp.",
         parse_spill_folder, NULL},
    },
};

bool plans_parts(void) {
    return wanted_parts != 0;
}

/* ---- The plan ------------------------------------------------------------ */

/* Bytes of all nodes together, and seconds. */
static struct {
    uint32_t parts, most_parts;
    uint64_t part_keys, part_body, part_memory, part_hashes;
    uint64_t at_once; /* parts that a node builds at a time */
    uint64_t input, hashes, sent, spilled, written, body;
    double hash_time, move_time, build_time, join_time;
    struct phase_speed speed;
} plan;

/* What a process of 'build --part' takes beside the body: buffers, and hashes
 * that a static part waits for. */
static uint64_t memory_beside(bool is_static) {
    return (is_static ? UINT64_C(224) : UINT64_C(16)) << 20;
}

/* A file of hashes has its range, the margin after it, and what frames them.
 */
static uint64_t hash_file_bytes(double keys, uint32_t parts) {
    const double margin = parts > 1 ? (1 - 1. / parts) / 32 : 0;
    const double hashes = keys * (1 + margin);
    return (uint64_t)ceil(hashes * (8 + 16. / HASH_CHUNK_MOST)) +
           HASH_START_BYTES + 8 + HASH_END_BYTES;
}

static uint64_t divide_up(uint64_t a, uint64_t b) {
    return a / b + (a % b != 0);
}

static void expect_can(const struct planned *filter) {
    if (!(calyx_kind_can(filter->kind) & CALYX_CAN_PARTS))
        fail("filters of kind %s cannot be made of parts: a key has several "
             "places in them, or may move; use kind %s",
             filter->kind, calyx_kinds()[0]);
}

/* Of files of hashes: a part ends where a block, or a lot of a static kind,
 * begins, which must be less than the margin of such a file after it. */
static uint64_t most_parts(const struct planned *filter) {
    enum { LEAST_BODY = 4096, LEAST_KEYS_STATIC = 280000 };
    const uint64_t most = calyx_kind_can(filter->kind) & CALYX_CAN_STATIC
                              ? filter->is.capacity / LEAST_KEYS_STATIC
                              : filter->is.bytes / LEAST_BODY;
    return most < 1 ? 1 : most < MOST_HASH_PARTS ? most : MOST_HASH_PARTS;
}

/* The least number of parts that fit, and keep all cores busy. */
static uint64_t choose_parts(const struct planned *filter, uint64_t beside) {
    char has[TEXT_SIZE], wants[TEXT_SIZE];
    const uint64_t share = (uint64_t)(0.8 * (double)node_memory) / cores;
    if (share <= beside)
        fail("a node with %s of memory cannot build %llu parts at a time: each "
             "takes %s beside its part of the filter",
             size_text(node_memory, has), (unsigned long long)cores,
             size_text(beside, wants));
    const uint64_t all_cores = nodes * cores;
    const uint64_t fitting = divide_up(filter->is.bytes, share - beside);
    const uint64_t parts = divide_up(fitting, all_cores) * all_cores;
    const uint64_t most = most_parts(filter);
    return fitting > most || parts < most ? parts : most;
}

/* The parts of 'calyx hash', which has a file open for each part. */
static void expect_possible(uint64_t parts) {
    struct rlimit limit;
    if (parts > MOST_HASH_PARTS)
        fail("%llu parts are needed, and 'calyx hash' makes at most %d: use "
             "nodes with more memory, or fewer cores at a time",
             (unsigned long long)parts, MOST_HASH_PARTS);
    enum { OTHER_FILES = 64 };
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
        limit.rlim_max != RLIM_INFINITY && limit.rlim_max < parts + OTHER_FILES)
        fail("'calyx hash' opens a file for each of %llu parts, and may open "
             "%llu here: raise the limit (ulimit -Hn)",
             (unsigned long long)parts, (unsigned long long)limit.rlim_max);
}

static void count_bytes(const struct planned *filter, uint64_t key_bytes) {
    const uint64_t keys = filter->is.capacity;
    const uint64_t lines = input_bytes ? input_bytes / (key_bytes + 1) : keys;
    const double lines_of_part = (double)lines / plan.parts;
    const bool is_static = calyx_kind_can(filter->kind) & CALYX_CAN_STATIC;
    const double bumped = is_static ? 0.04 : 0; /* the share of keys */
    plan.body = filter->is.bytes;
    plan.written = plan.body + (uint64_t)(8 * bumped * (double)keys) +
                   plan.parts * PART_HEADS;
    plan.input = input_bytes ? input_bytes : keys * (key_bytes + 1);
    plan.part_keys = divide_up(keys, plan.parts);
    plan.part_body = divide_up(plan.body, plan.parts);
    plan.part_memory = plan.part_body + memory_beside(is_static);
    plan.part_hashes = hash_file_bytes(lines_of_part, plan.parts);
    plan.hashes = plan.parts * plan.part_hashes;
    plan.sent = (uint64_t)((double)plan.hashes * (1 - 1. / (double)nodes));
    const uint64_t waiting = 8 * (uint64_t)lines_of_part;
    plan.spilled =
        is_static && waiting > UINT64_C(160) << 20 ? plan.parts * waiting : 0;
    plan.at_once = divide_up(plan.parts, nodes);
    if (plan.at_once > cores) plan.at_once = cores;
}

/* A node keeps the hashes it wrote, gets the hashes of its parts, and has its
 * parts; one node has the filter, and reads parts from where they are. */
static uint64_t disk_needed(void) {
    const uint64_t received = network ? divide_up(plan.sent, nodes) : 0;
    return divide_up(plan.hashes, nodes) + received +
           divide_up(plan.spilled, plan.parts) * plan.at_once +
           divide_up(plan.written, nodes) + plan.body;
}

static void expect_disk(void) {
    char has[TEXT_SIZE], wants[TEXT_SIZE];
    if (disk && disk_needed() > disk)
        fail("a node has %s of disk, and needs %s: hashes, parts, and on the "
             "node that joins the filter; use more nodes or larger disks",
             size_text(disk, has), size_text(disk_needed(), wants));
}

/* Lists are of equal length, and each core hashes one at a time; parts are
 * built one after another; one process joins. */
static void count_time(const struct planned *filter, uint64_t key_bytes) {
    const struct phase_load load = {.kind = filter->kind,
                                    .rate = filter->rate,
                                    .line_bytes = key_bytes + 1,
                                    .part_keys = plan.part_keys,
                                    .part_bytes = plan.part_body,
                                    .parts = plan.parts};
    plan.speed = (calibrates ? measured_speed : stated_speed)(&load);
    const struct phase_speed *const s = &plan.speed;
    const double all_cores = (double)(nodes * cores);
    const double lines = (double)plan.input / (double)load.line_bytes;
    const double hashes_of_part = (double)plan.part_hashes / 8;
    plan.hash_time = s->hash_start + s->line * lines / all_cores;
    plan.build_time = (double)divide_up(plan.parts, nodes * cores) *
                      (s->build_start + s->hash * hashes_of_part);
    plan.join_time = s->byte * (double)plan.body;
    if (!network) return;
    plan.move_time = 8 * (double)plan.sent / (double)nodes / (double)network;
    plan.join_time +=
        8 * (double)plan.written * (1 - 1. / (double)nodes) / (double)network;
}

void plan_parts(const struct planned *filter, uint64_t key_bytes) {
    expect_can(filter);
    const bool chooses = wanted_parts == AUTO;
    const bool is_static = calyx_kind_can(filter->kind) & CALYX_CAN_STATIC;
    if (!node_memory) node_memory = memory_left("");
    const uint64_t parts = chooses
                               ? choose_parts(filter, memory_beside(is_static))
                               : (uint64_t)wanted_parts;
    if (chooses || calibrates) expect_possible(parts);
    plan.parts = (uint32_t)parts;
    plan.most_parts = (uint32_t)most_parts(filter);
    count_bytes(filter, key_bytes);
    expect_disk();
    count_time(filter, key_bytes);
}

/* ---- For people ---------------------------------------------------------- */

static char *duration_text(double seconds, char *buffer) {
    const char *unit = "s";
    if (seconds >= 7200) seconds /= 3600, unit = "h";
    if (seconds >= 120 && *unit == 's') seconds /= 60, unit = "min";
    snprintf(buffer, TEXT_SIZE, "%.3g %s", seconds, unit);
    return buffer;
}

static void print_bytes(const char *what, uint64_t all) {
    char a[TEXT_SIZE], b[TEXT_SIZE];
    printf("%-24s  %10s  %10s\n", what, size_text(divide_up(all, nodes), a),
           size_text(all, b));
}

static void print_time(const char *what, double seconds) {
    char text[TEXT_SIZE];
    printf("%-24s  %10s\n", what, duration_text(seconds, text));
}

void print_parts(void) {
    char part[TEXT_SIZE], hashes[TEXT_SIZE], task[TEXT_SIZE], all[TEXT_SIZE];
    printf("\nIn %u parts, by 'calyx hash', 'build --part' and 'join': each "
           "takes %s of memory,\n%s with its buffers, and reads %s of "
           "hashes. %llu node%s, %llu part%s at a time on each,\nin %s of "
           "memory.\n\n",
           plan.parts, size_text(plan.part_body, part),
           size_text(plan.part_memory, task),
           size_text(plan.part_hashes, hashes), (unsigned long long)nodes,
           nodes == 1 ? "" : "s", (unsigned long long)plan.at_once,
           plan.at_once == 1 ? "" : "s",
           size_text(plan.at_once * plan.part_memory, all));
    printf("%-24s  %10s  %10s\n", "", "a node", "in all");
    print_bytes("lists read", plan.input);
    print_bytes("hashes written", plan.hashes);
    print_bytes("hashes moved", plan.sent);
    print_bytes("hashes spilled", plan.spilled);
    print_bytes("parts written", plan.written);
    printf("\n");
    print_time("time to hash", plan.hash_time);
    if (network) print_time("time to move", plan.move_time);
    print_time("time to build", plan.build_time);
    print_time("time to join, on one", plan.join_time);
    if (plan.parts > plan.most_parts)
        printf(
            "\nThat is too many for 'calyx hash': %u at most. More are built "
            "from lines only.\n",
            plan.most_parts);
    printf("\nTimes are by the speed %s:\n%.3g ns a line, %.3g ns a hash, "
           "%.3g ns a joined byte.\n",
           calibrates ? "measured here"
                      : "of a server of 2023; --calibrate "
                        "measures this one",
           1e9 * plan.speed.line, 1e9 * plan.speed.hash, 1e9 * plan.speed.byte);
}

/* ---- For programs -------------------------------------------------------- */

void write_parts(void) {
    json_open("parts", '{');
    json_count("parts", plan.parts);
    json_count("most_parts", plan.most_parts);
    json_count("memory_bytes", plan.part_body);
    json_count("task_memory_bytes", plan.part_memory);
    json_count("hash_bytes", plan.part_hashes);
    json_count("nodes", nodes);
    json_count("parts_at_once", plan.at_once);
    json_count("input_bytes", plan.input);
    json_count("hashes_written", plan.hashes);
    json_count("hashes_moved", plan.sent);
    json_count("hashes_spilled", plan.spilled);
    json_count("parts_written", plan.written);
    json_count("filter_bytes", plan.body);
    json_count("disk_bytes_a_node", disk_needed());
    json_answer("calibrated", calibrates);
    json_number("hash_seconds", plan.hash_time);
    json_number("move_seconds", plan.move_time);
    json_number("build_seconds", plan.build_time);
    json_number("join_seconds", plan.join_time);
    json_close();
}
