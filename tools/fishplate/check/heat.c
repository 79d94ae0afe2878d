/* heat.c: the matrix of bandwidths as a picture (SVG): a slow host shows as a dark cross. Colours run from
 * slow (dark) to fast (light) and suit readers with red-green colour blindness.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "../html.h"
#include "check.h"

static double heat_largest_figure(const struct survey *s)
{
    double most = 0;
    for (int i = 0; i < s->n * s->n; i++)
        most = fmax(most, s->bandwidth[i]);
    return most;
}

/* Returns the colour of a share from 0 (dark violet) to 1 (yellow). */
static void heat_colour(double share, char out[8])
{
    static const int stops[][3] = {{68, 1, 84}, {59, 82, 139}, {33, 145, 140}, {94, 201, 98}, {253, 231, 37}};
    const double at = fmin(fmax(share, 0), 1) * 4;
    const int low = at >= 4 ? 3 : (int)at;
    int c[3];
    for (int i = 0; i < 3; i++)
        c[i] = (int)(stops[low][i] + (stops[low + 1][i] - stops[low][i]) * (at - low));
    snprintf(out, 8, "#%02x%02x%02x", c[0] & 255, c[1] & 255, c[2] & 255);
}

static void heat_print_label(FILE *out, double x, double y, const char *text, bool steep)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\"%s", x, y, steep ? "" : " text-anchor=\"end\"");
    if (steep)
        fprintf(out, " transform=\"rotate(-60 %.1f %.1f)\"", x, y);
    fputc('>', out);
    html_text(out, text);
    fputs("</text>\n", out);
}

void check_svg(FILE *out, const void *survey)
{
    const struct survey *s = survey;
    const double most = heat_largest_figure(s), side = fmax(4, fmin(40, 640.0 / s->n)), left = 150, top = 130;
    const double width = left + s->n * side + 120, height = top + s->n * side + 40;
    const int step =
        s->n <= 64 ? 1 : (s->n + 63) / 64; /* with more than 64 hosts only every step-th name is printed */
    char fill[8];
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
            "font-family=\"sans-serif\" "
            "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
            "<text x=\"10\" y=\"20\" font-size=\"15\">Bandwidth between hosts, MB/s</text>\n",
            width, height, width);
    for (int a = 0; a < s->n; a++) {
        if (a % step == 0) {
            heat_print_label(out, left - 6, top + a * side + side / 2 + 4, s->hosts[a].host, false);
            heat_print_label(out, left + a * side + side / 2, top - 6, s->hosts[a].host, true);
        }
        for (int b = 0; b < s->n; b++) {
            const double rate = s->bandwidth[a * s->n + b];
            if (a == b || rate <= 0)
                continue;
            heat_colour(rate / most, fill);
            fprintf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"><title>",
                    left + b * side, top + a * side, side - (side > 8 ? 1 : 0), side - (side > 8 ? 1 : 0),
                    fill);
            html_text(out, s->hosts[a].host);
            fputs(" - ", out);
            html_text(out, s->hosts[b].host);
            fprintf(out, ": %.0f MB/s, %.2f us</title></rect>\n", rate / 1e6, s->latency[a * s->n + b] * 1e6);
        }
    }
    for (int i = 0; i <= 4; i++) { /* colour scale */
        heat_colour(i / 4.0, fill);
        fprintf(out,
                "<rect x=\"%.1f\" y=\"%d\" width=\"16\" height=\"16\" fill=\"%s\"/>\n<text x=\"%.1f\" "
                "y=\"%d\">%.0f</text>\n",
                left + s->n * side + 16, (int)top + i * 20, fill, left + s->n * side + 38,
                (int)top + i * 20 + 12, most * i / 4 / 1e6);
    }
    fputs("</svg>\n", out);
}
