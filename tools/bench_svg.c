// SPDX-License-Identifier: BSD-2-Clause

#include <math.h>

#include "tools/bench.h"

enum { WIDTH = 720, HEIGHT = 420, LEFT = 80, RIGHT = 150, TOP = 40, BOTTOM = 60 };

typedef struct scale {
    double low, high; // powers of ten
    size_t n;
} scale;

static double at_x(const scale *s, size_t i)
{
    double step = (double)(WIDTH - LEFT - RIGHT) / (double)(s->n > 1 ? s->n - 1 : 1);
    return LEFT + step * (double)i;
}
static double at_y(const scale *s, double v)
{
    double part = (log10(v) - s->low) / (s->high - s->low);
    return HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM);
}

static scale fit(size_t n, const svg_line *lines, size_t line_count)
{
    scale s = {INFINITY, -INFINITY, n};
    for (size_t l = 0; l < line_count; l++) {
        for (size_t i = 0; i < n; i++) {
            double v = lines[l].y[i];
            if (!(v > 0)) continue;
            if (floor(log10(v)) < s.low) s.low = floor(log10(v));
            if (ceil(log10(v)) > s.high) s.high = ceil(log10(v));
        }
    }
    if (s.low > s.high) s.low = 0, s.high = 1;
    if (s.high - s.low < 1) s.high = s.low + 1;
    return s;
}

static void axes(FILE *f, const scale *s, const double *x, const char *x_label, const char *y_label)
{
    for (double e = s->low; e <= s->high; e++) {
        double y = at_y(s, pow(10, e));
        fprintf(f, "<line x1='%d' y1='%.1f' x2='%d' y2='%.1f' stroke='#ddd'/>\n", LEFT, y,
                WIDTH - RIGHT, y);
        fprintf(f, "<text x='%d' y='%.1f' text-anchor='end'>%g</text>\n", LEFT - 6, y + 4,
                pow(10, e));
    }
    for (size_t i = 0; i < s->n; i++) {
        fprintf(f, "<text x='%.1f' y='%d' text-anchor='middle'>%g</text>\n", at_x(s, i),
                HEIGHT - BOTTOM + 18, x[i]);
    }
    fprintf(f, "<text x='%d' y='%d' text-anchor='middle'>%s</text>\n", (LEFT + WIDTH - RIGHT) / 2,
            HEIGHT - 16, x_label);
    fprintf(f, "<text transform='translate(18 %d) rotate(-90)' text-anchor='middle'>%s</text>\n",
            (TOP + HEIGHT - BOTTOM) / 2, y_label);
}

static void draw_line(FILE *f, const scale *s, const svg_line *line, size_t number)
{
    static const char *const colours[] = {"#c0392b", "#2471a3", "#1e8449", "#7d3c98", "#b9770e"};
    const char *colour = colours[number % 5];
    fprintf(f, "<polyline fill='none' stroke='%s' stroke-width='2' points='", colour);
    for (size_t i = 0; i < s->n; i++) {
        if (line->y[i] > 0) fprintf(f, "%.1f,%.1f ", at_x(s, i), at_y(s, line->y[i]));
    }
    fprintf(f, "'/>\n");
    for (size_t i = 0; i < s->n; i++) {
        if (!(line->y[i] > 0)) continue;
        fprintf(f, "<circle cx='%.1f' cy='%.1f' r='3' fill='%s'/>\n", at_x(s, i),
                at_y(s, line->y[i]), colour);
    }
    fprintf(f, "<text x='%d' y='%d' fill='%s'>%s</text>\n", WIDTH - RIGHT + 14,
            TOP + 16 + (int)number * 20, colour, line->name);
}

bool bench_svg(const char *file, const char *title, const char *x_label, const char *y_label,
               const double *x, size_t n, const svg_line *lines, size_t line_count)
{
    FILE *f = fopen(file, "w");
    if (f == NULL) return false;
    scale s = fit(n, lines, line_count);
    fprintf(f,
            "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' font-family='sans-serif' "
            "font-size='12'>\n<rect width='100%%' height='100%%' fill='white'/>\n"
            "<text x='%d' y='22' font-size='15'>%s</text>\n",
            WIDTH, HEIGHT, LEFT, title);
    axes(f, &s, x, x_label, y_label);
    for (size_t l = 0; l < line_count; l++) draw_line(f, &s, &lines[l], l);
    fprintf(f, "</svg>\n");
    return fclose(f) == 0;
}
