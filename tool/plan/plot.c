/*
 * The plots of calyx plan, as SVG: three panels with a logarithmic rate
 * upwards. Nothing but text is written, with the style within, so that the file
 * shows in a browser as it is, in light and in dark.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "plan/plot.h"

/* ---- A panel ------------------------------------------------------------ */

static const double WIDTH = 1650, HEIGHT = 520, TOP = 60, TALL = 360,
                    WIDE = 400;

struct panel {
    struct output *to;
    double left;      /* of the frame, on the page       */
    double most;      /* x goes from 0 to this           */
    int decades;      /* y goes from 1 down to 10^-these */
    const char *name; /* of the area that curves keep to */
};

static void write_text(struct output *to, const char *format, ...) PRINTS(2, 3);
static void write_text(struct output *to, const char *format, ...) {
    char text[2048];
    va_list values;
    va_start(values, format);
    const int size = vsnprintf(text, sizeof text, format, values);
    va_end(values);
    output_write(to, text, (size_t)size);
}

static double across(const struct panel *p, double x) {
    return p->left + WIDE * x / p->most;
}

static double down(const struct panel *p, double rate) {
    const double decades = -log10(fmax(rate, 1e-30));
    return TOP + TALL * decades / p->decades;
}

static void label(const struct panel *p, const char *style, double x, double y,
                  const char *text) {
    write_text(p->to, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
               style, x, y, text);
}

static void line(const struct panel *p, const char *style, double x1, double y1,
                 double x2, double y2) {
    write_text(p->to,
               "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" "
               "y2=\"%.1f\"/>\n",
               style, x1, y1, x2, y2);
}

/* "1 %" for people, but short: 1e-6 has six decades. */
static const char *decade_text(int decade) {
    static const char *const texts[] = {"100 %", "10 %",   "1 %",
                                        "0.1 %", "0.01 %", "0.001 %"};
    static char text[64];
    if (decade < 6) return texts[decade];
    snprintf(text, sizeof text,
             "10<tspan dy=\"-5\" font-size=\"9\">-%d</tspan>", decade);
    return text;
}

/* Frame, grid, ticks and names of the axes. `unit` follows the ticks of x. */
static void frame(const struct panel *p, const char *title, const char *x_name,
                  double step, double scale, const char *unit) {
    const double bottom = TOP + TALL, right = p->left + WIDE;
    char text[32];
    write_text(p->to,
               "<clipPath id=\"%s\"><rect x=\"%.1f\" y=\"%g\" width=\"%g\" "
               "height=\"%g\"/></clipPath>\n",
               p->name, p->left, TOP, WIDE, TALL);
    for (int i = 0; i <= p->decades; i++) {
        const double y = TOP + TALL * i / p->decades;
        line(p, "grid", p->left, y, right, y);
        label(p, "tick end", p->left - 8, y + 4, decade_text(i));
    }
    for (int i = 0; i <= (int)round(p->most / step); i++) {
        const double x = i * step;
        line(p, "grid", across(p, x), TOP, across(p, x), bottom);
        snprintf(text, sizeof text, "%g%s", x * scale, unit);
        label(p, "tick mid", across(p, x), bottom + 18, text);
    }
    label(p, "title", p->left, TOP - 22, title);
    label(p, "axis mid", p->left + WIDE / 2, bottom + 42, x_name);
    write_text(p->to,
               "<text class=\"axis mid\" transform=\"translate(%.1f %.1f) "
               "rotate(-90)\">rate: share of absent keys that pass</text>\n",
               p->left - 62, TOP + TALL / 2);
}

/* ---- A curve ------------------------------------------------------------ */

/* The rate at x, or a negative number where there is none. */
typedef double rate_at(const void *of, double x);

static const double SAMPLES = 160;

/* Points below the frame are left to the clip path, so that the curve leaves
 * where it should. Gives the last point in the frame. */
static void curve(const struct panel *p, const char *style, rate_at *rate,
                  const void *of, double *end_x, double *end_y) {
    bool drawing = false;
    *end_x = -1;
    for (int i = 1; i <= SAMPLES; i++) {
        const double x = p->most * i / SAMPLES, r = rate(of, x);
        if (r < 0) continue;
        const double y = down(p, r);
        if (!drawing)
            write_text(p->to,
                       "<polyline class=\"%s\" clip-path=\"url(#%s)\" "
                       "points=\"",
                       style, p->name);
        drawing = true;
        write_text(p->to, "%.1f,%.1f ", across(p, x), fmin(y, 4 * HEIGHT));
        if (y <= TOP + TALL) *end_x = across(p, x), *end_y = y;
    }
    if (drawing) write_text(p->to, "\"/>\n");
}

/* ---- Rate against bits a key -------------------------------------------- */

struct size_curve {
    const char *kind;
    uint32_t probes; /* 0: the best */
    double keys;
    double share; /* of the bits that a query reads; counters take the rest */
};

static double rate_by_bits(const void *of, double bits_a_key) {
    const struct size_curve *const b = of;
    const calyx_options want = {
        .kind = b->kind,
        .capacity = (uint64_t)b->keys,
        .bits = (uint64_t)(bits_a_key * b->keys * b->share),
        .probes = b->probes,
    };
    calyx_info is;
    double rate;
    if (calyx_plan(&want, &is, NULL) != CALYX_OK) return -1;
    if (calyx_rate_at(&want, want.capacity, &rate, NULL) != CALYX_OK) return -1;
    return rate;
}

/* Curves hardly depend on the number of keys, but a filter of few keys has few
 * blocks, which would show as steps. */
static double drawn_keys(const struct plan *plan) {
    return fmin(1e9, fmax(1e5, (double)plan->chosen->is.capacity));
}

static double share_of_bits(const calyx_info *is) {
    return fmin(1, (double)is->bits / (8 * (double)is->bytes) * 1.0001);
}

static void style_of(int kind, char *style) {
    enum { STYLES = 8 };
    snprintf(style, TEXT_SIZE, "curve k%d", kind % STYLES);
}

static void draw_probes(const struct panel *p, const struct plan *plan) {
    static const uint32_t drawn[] = {1, 2, 3, 4, 6, 8, 12, 16};
    double last = 0; /* labels must not touch */
    for (size_t i = 0; i < sizeof drawn / sizeof *drawn; i++) {
        const struct size_curve by = {plan->chosen->kind, drawn[i],
                                      drawn_keys(plan),
                                      share_of_bits(&plan->chosen->is)};
        double x, y;
        curve(p, "probes", rate_by_bits, &by, &x, &y);
        char text[24];
        snprintf(text, sizeof text, "k=%u", drawn[i]);
        if (x < p->left + WIDE - 2 || fabs(y - last) < 12) continue;
        label(p, "small", x + 4, y + 4, text);
        last = y;
    }
}

static void draw_by_bits(const struct plan *plan, struct output *to) {
    const struct panel p = {to, 100, 40, 8, "bits"};
    frame(&p, "Rate against size", "bits a key", 5, 1, "");
    draw_probes(&p, plan);
    for (int i = 0; i < plan->kinds; i++) {
        const struct planned *const k = &plan->kind[i];
        if (!k->possible) continue;
        const struct size_curve by = {k->kind, 0, drawn_keys(plan),
                                      share_of_bits(&k->is)};
        char style[TEXT_SIZE];
        style_of(i, style);
        double x, y;
        curve(&p, style, rate_by_bits, &by, &x, &y);
    }
}

/* ---- Rate against fill -------------------------------------------------- */

/* Of a filter of the same bits; negative if its kind does not take this number
 * of probes. */
static double rate_of(const calyx_info *is, uint32_t probes, uint64_t keys) {
    const calyx_options made = {.kind = is->kind,
                                .capacity = is->capacity,
                                .bits = is->bits,
                                .probes = probes};
    double rate;
    if (calyx_rate_at(&made, keys, &rate, NULL) != CALYX_OK) return -1;
    return rate;
}

static double rate_by_fill(const void *of, double fill) {
    const calyx_info *const is = of;
    return rate_of(is, is->probes, (uint64_t)(fill * (double)is->capacity));
}

static void draw_by_fill(const struct plan *plan, struct output *to) {
    const double promised = plan->chosen->rate;
    const int decades = (int)fmin(12, ceil(-log10(promised)) + 4);
    const struct panel p = {to, 650, 2, decades, "fill"};
    frame(&p, "Rate against fill", "keys in it, as a share of its capacity",
          0.25, 100, " %");
    line(&p, "promise", p.left, down(&p, promised), p.left + WIDE,
         down(&p, promised));
    line(&p, "promise", across(&p, 1), TOP, across(&p, 1), TOP + TALL);
    char rate[TEXT_SIZE], text[64];
    snprintf(text, sizeof text, "at capacity: %s", rate_text(promised, rate));
    label(&p, "small", p.left + 6, down(&p, promised) - 6, text);
    for (int i = 0; i < plan->kinds; i++) {
        if (!plan->kind[i].possible) continue;
        char style[TEXT_SIZE];
        style_of(i, style);
        double x, y;
        curve(&p, style, rate_by_fill, &plan->kind[i].is, &x, &y);
    }
}

/* ---- Rate against probes ------------------------------------------------ */

enum { DRAWN_PROBES = 24 };

static void draw_point(const struct panel *p, const char *style, double probes,
                       double rate, double radius) {
    if (down(p, rate) > TOP + TALL) return;
    write_text(p->to,
               "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%g\"/>\n",
               style, across(p, probes), down(p, rate), radius);
}

/* The U-curve of the textbooks: few probes hardly distinguish keys, many fill
 * the bits. */
static void draw_by_probes(const struct plan *plan, struct output *to) {
    const calyx_info *const is = &plan->chosen->is;
    uint32_t best = 0;
    double lowest = 2;
    for (uint32_t k = 1; k <= DRAWN_PROBES; k++) {
        const double rate = rate_of(is, k, is->capacity);
        if (rate >= 0 && rate < lowest) lowest = rate, best = k;
    }
    const int decades = (int)fmin(12, ceil(-log10(lowest)) + 1);
    const struct panel p = {to, 1200, DRAWN_PROBES, decades, "k"};
    char title[64], text[96], rate[TEXT_SIZE];
    snprintf(title, sizeof title, "Rate against probes, %.20s",
             plan->chosen->kind);
    frame(&p, title, "probes: bits that a key sets, k", 4, 1, "");
    char style[TEXT_SIZE];
    style_of((int)(plan->chosen - plan->kind), style);
    for (uint32_t k = 1; k <= DRAWN_PROBES; k++) {
        const double r = rate_of(is, k, is->capacity);
        if (r >= 0) draw_point(&p, style, k, r, k == best ? 6 : 3);
    }
    if (!best) return;
    snprintf(text, sizeof text, "best: k=%u, %s", best,
             rate_text(lowest, rate));
    label(&p, "small mid", across(&p, best), down(&p, lowest) + 24, text);
}

/* ---- The page ----------------------------------------------------------- */

/* One row below the panels; kinds that could not be made are not there. */
static void draw_legend(const struct plan *plan, struct output *to) {
    const struct panel p = {to, 100, 1, 1, ""};
    double x = p.left;
    const double y = TOP + TALL + 76;
    for (int i = 0; i < plan->kinds; i++) {
        if (!plan->kind[i].possible) continue;
        char style[TEXT_SIZE], text[80];
        style_of(i, style);
        line(&p, style, x, y, x + 30, y);
        snprintf(text, sizeof text, "%s, k=%u", plan->kind[i].kind,
                 plan->kind[i].is.probes);
        label(&p, "axis", x + 36, y + 4, text);
        x += 64 + 7 * (double)strlen(text);
    }
    char text[96];
    line(&p, "probes", x, y, x + 30, y);
    snprintf(text, sizeof text, "%s, other k", plan->chosen->kind);
    label(&p, "axis", x + 36, y + 4, text);
}

/* Plain colours, not variables, since not every program that shows SVG knows
 * those; and the dark ones again for browsers that support that preference. */
#define COLOURS(page, ink, faint, mid, k0, k1, k2, k3, k4, k5, k6, k7)       \
    "text { fill: " ink "; } .tick, .small { fill: " mid "; }\n"             \
    ".page { fill: " page "; } .grid { stroke: " faint "; }\n"               \
    ".promise, .probes { stroke: " mid "; }\n"                               \
    ".k0 { stroke: " k0 "; } .k1 { stroke: " k1 "; } .k2 { stroke: " k2      \
    "; }\n.k3 { stroke: " k3 "; } .k4 { stroke: " k4 "; } .k5 { stroke: " k5 \
    "; }\n.k6 { stroke: " k6 "; } .k7 { stroke: " k7 "; }\n"

static const char style_sheet[] =
    "<style>\n"
    "text { font: 13px system-ui, sans-serif; }\n"
    ".title { font-size: 16px; font-weight: 600; }\n"
    ".tick, .small { font-size: 11px; }\n"
    ".mid { text-anchor: middle; } .end { text-anchor: end; }\n"
    ".promise { stroke-dasharray: 5 4; }\n"
    ".probes { fill: none; stroke-width: 0.8; opacity: 0.75; }\n"
    ".curve { fill: none; stroke-width: 2.2; }\n"
    "circle.curve { stroke-dasharray: none; }\n"
    ".k2 { stroke-dasharray: 9 3; } .k3 { stroke-dasharray: 3 3; }\n"
    ".k4 { stroke-dasharray: 10 3 2 3; } .k6 { stroke-dasharray: 14 4; }\n"
    ".k7 { stroke-dasharray: 6 2 1 2; }\n" COLOURS(
        "#ffffff", "#1f2328", "#d8dee4", "#5f6872", "#0072b2", "#c2410c",
        "#047857", "#9d2f8f", "#8a6d00", "#4b5563", "#b3123f",
        "#4338ca") "@media (prefers-color-scheme: dark) "
                   "{\n" COLOURS("#16191d", "#e6edf3", "#343a42", "#9aa4af",
                                 "#5db7f0", "#ff9d5c", "#4fd6a4", "#e58fd8",
                                 "#e6cc4d", "#b6c0cc", "#ff8fa8",
                                 "#a5b4ff") "}\n</style>\n";

void plot_plan(const struct plan *plan, struct output *to) {
    write_text(to,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g "
               "%g\" width=\"%g\" height=\"%g\" role=\"img\">\n"
               "<title>Rates of calyx filters, by size, by fill and by "
               "probes</title>\n",
               WIDTH, HEIGHT, WIDTH, HEIGHT);
    output_write(to, style_sheet, strlen(style_sheet));
    write_text(to, "<rect class=\"page\" width=\"%g\" height=\"%g\"/>\n", WIDTH,
               HEIGHT);
    draw_by_bits(plan, to);
    draw_by_fill(plan, to);
    draw_by_probes(plan, to);
    draw_legend(plan, to);
    write_text(to, "</svg>\n");
}
