/* How long the command waits for a web server: tool/http/patience.h. */
#include "http/patience.h"

#include "support.h"

static struct patience full(void) {
    struct patience p = {.most = 30};
    patience_fill(&p, 1000);
    return p;
}

/* What is left after these seconds, if each brings this many bytes. */
static double after(struct patience *p, int seconds, uint64_t bytes) {
    while (seconds-- > 0) patience_after(p, p->now + 1, bytes, false);
    return p->left;
}

static void silence_is_borne_for_the_timeout(void **state) {
    (void)state;
    struct patience p = full();
    assert_true(after(&p, 29, 0) == 1);
    assert_true(after(&p, 1, 0) == 0);
    assert_true(p.now - p.since == 30);
    assert_int_equal(p.bytes, 0);
}

static void an_answer_starts_the_timeout_again(void **state) {
    (void)state;
    struct patience p = full();
    for (int i = 0; i < 1000; i++) {
        assert_true(after(&p, 29, 1) > 0);
        assert_int_equal(p.bytes, 29);
        assert_true(patience_after(&p, p.now + 0.5, 10, true) == 30);
        assert_int_equal(p.bytes, 0);
    }
}

/* Seconds until it is given up, at most 100,000. */
static int borne(uint64_t bytes_a_second) {
    struct patience p = full();
    int seconds = 0;
    while (seconds < 100000 && after(&p, 1, bytes_a_second) > 0) seconds++;
    return seconds;
}

static void a_byte_adds_a_millisecond(void **state) {
    (void)state;
    assert_int_equal(borne(0), 29);
    assert_int_equal(borne(2), 30);
    assert_in_range(borne(500), 58, 60);
    assert_in_range(borne(900), 298, 300);
    assert_int_equal(borne(1000), 100000);
    assert_int_equal(borne(1000000), 100000);
}

static void many_bytes_are_no_credit_beyond_the_timeout(void **state) {
    (void)state;
    struct patience p = full();
    assert_true(after(&p, 1, UINT64_C(1) << 40) == 30);
    assert_true(after(&p, 30, 0) == 0);
}

static void a_process_that_was_stopped_does_not_blame_the_server(void **state) {
    (void)state;
    struct patience p = full();
    assert_true(patience_after(&p, 5000, 0, false) == 28);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silence_is_borne_for_the_timeout),
        cmocka_unit_test(an_answer_starts_the_timeout_again),
        cmocka_unit_test(a_byte_adds_a_millisecond),
        cmocka_unit_test(many_bytes_are_no_credit_beyond_the_timeout),
        cmocka_unit_test(a_process_that_was_stopped_does_not_blame_the_server),
    };
    return RUN_TESTS(tests);
}
