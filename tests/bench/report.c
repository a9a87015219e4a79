#include "tests/bench/report.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { VALUE_TEXT = 32, ROW_TEXT = 64 };

static const char *value_text(double value, int digits, char *text)
{
    if (isnan(value))
        snprintf(text, VALUE_TEXT, "-");
    else
        snprintf(text, VALUE_TEXT, "%.*f", digits, value);
    return text;
}

static double goal_value(const struct report *report, const struct goal *goal)
{
    if (goal->sense == NEVER_ABOVE)
        return sheet_largest(report->sheet, goal->row, goal->figure);
    return sheet_ratio(report->sheet, goal->row, goal->figure, goal->to_row, goal->to_figure);
}

/* The goal's figure, measured with the proxy. A ratio to the masters' processor time in the same
 * scenario becomes a ratio to their time with the proxy. NAN if it was not measured. */
static double proxy_value(const struct report *report, const struct goal *goal)
{
    char row[ROW_TEXT];
    struct goal of_proxy = *goal;
    snprintf(row, sizeof(row), REPORT_PROXY "%s", goal->row);
    if (!sheet_knows(report->sheet, row))
        return NAN;
    of_proxy.row = row;
    if (goal->to_row != NULL && strcmp(goal->to_row, goal->row) == 0)
        of_proxy.to_row = row;
    return goal_value(report, &of_proxy);
}

static bool has_proxy(const struct report *report)
{
    for (unsigned i = 0; i < report->goal_count; i++)
        if (!isnan(goal_value(report, &report->goals[i])) &&
            !isnan(proxy_value(report, &report->goals[i])))
            return true;
    return false;
}

static const char *verdict(const struct goal *goal, double value)
{
    bool met = goal->sense == AT_LEAST ? value >= goal->limit : value <= goal->limit;
    return met ? "met" : "not met";
}

/* The number of digits after the point: enough to see by how much a goal is missed (0.9894 is not
 * 0.99), and no more. */
static int goal_digits(const struct goal *goal)
{
    if (goal->limit >= 100)
        return 0;
    return goal->figure == JAIN || goal->figure == HELD ? 4 : 2;
}

/* --- text --- */

static void print_scenarios(const struct sheet *sheet)
{
    char text[VALUE_TEXT];
    printf("\n%-28s", "");
    for (unsigned figure = 0; figure < FIGURE_COUNT; figure++)
        if (sheet_has(sheet, figure))
            printf(" %10s", figure_infos[figure].title);
    printf("\n");
    for (unsigned row = 0; row < sheet->row_count; row++) {
        if (sheet->rounds[row] == 0)
            continue;
        printf("%-28s", sheet->names[row]);
        for (unsigned figure = 0; figure < FIGURE_COUNT; figure++)
            if (sheet_has(sheet, figure))
                printf(" %10s", value_text(sheet_median(sheet, row, figure),
                                           figure_infos[figure].digits, text));
        printf("\n");
    }
}

static void print_goal(const struct goal *goal, double value, const char *proxy)
{
    char measured[VALUE_TEXT], limit[VALUE_TEXT];
    printf("%-54s %9s %9s %s %9s  %s\n", goal->text, value_text(value, goal_digits(goal), measured),
           proxy,
           goal->sense == AT_LEAST ? ">=" : "<=", value_text(goal->limit, goal_digits(goal), limit),
           verdict(goal, value));
}

void report_print(const struct report *report)
{
    char proxy[VALUE_TEXT] = "";
    bool with_proxy = has_proxy(report);
    printf("\n%s\n", report->of);
    print_scenarios(report->sheet);
    printf("\n%-54s %9s %9s %12s\n", "goal", "measured", with_proxy ? "proxy" : "", "limit");
    for (unsigned i = 0; i < report->goal_count; i++) {
        const struct goal *goal = &report->goals[i];
        double value = goal_value(report, goal);
        if (isnan(value))
            continue;
        if (with_proxy)
            value_text(proxy_value(report, goal), goal_digits(goal), proxy);
        print_goal(goal, value, proxy);
    }
}

/* --- files --- */

static FILE *create(const char *path)
{
    FILE *out = fopen(path, "w");
    ck_assert_msg(out != NULL, "cannot write %s", path);
    return out;
}

static void write_header(FILE *out, const struct sheet *sheet)
{
    fprintf(out, "| |");
    for (unsigned figure = 0; figure < FIGURE_COUNT; figure++)
        if (sheet_has(sheet, figure))
            fprintf(out, " %s |", figure_infos[figure].title);
    fprintf(out, "\n|---|");
    for (unsigned figure = 0; figure < FIGURE_COUNT; figure++)
        if (sheet_has(sheet, figure))
            fprintf(out, "--:|");
    fprintf(out, "\n");
}

static void write_goals(FILE *out, const struct report *report)
{
    char measured[VALUE_TEXT], proxy[VALUE_TEXT], limit[VALUE_TEXT];
    bool with_proxy = has_proxy(report);
    fprintf(out, "| goal | measured |%s limit | |\n", with_proxy ? " proxy |" : "");
    fprintf(out, "|---|--:|%s--:|---|\n", with_proxy ? "--:|" : "");
    for (unsigned i = 0; i < report->goal_count; i++) {
        const struct goal *goal = &report->goals[i];
        double value = goal_value(report, goal);
        if (isnan(value))
            continue;
        fprintf(out, "| %s | %s |", goal->text, value_text(value, goal_digits(goal), measured));
        if (with_proxy)
            fprintf(out, " %s |", value_text(proxy_value(report, goal), goal_digits(goal), proxy));
        fprintf(out, " %s %s | %s |\n", goal->sense == AT_LEAST ? "≥" : "≤",
                value_text(goal->limit, goal_digits(goal), limit), verdict(goal, value));
    }
}

static void write_scenarios(FILE *out, const struct sheet *sheet)
{
    char text[VALUE_TEXT];
    write_header(out, sheet);
    for (unsigned row = 0; row < sheet->row_count; row++) {
        if (sheet->rounds[row] == 0)
            continue;
        fprintf(out, "| %s |", sheet->names[row]);
        for (unsigned figure = 0; figure < FIGURE_COUNT; figure++)
            if (sheet_has(sheet, figure))
                fprintf(out, " %s |",
                        value_text(sheet_median(sheet, row, figure), figure_infos[figure].digits,
                                   text));
        fprintf(out, "\n");
    }
}

void report_markdown(const struct report *report, const char *path)
{
    FILE *out = create(path);
    fprintf(out, "%s\n\n", report->of);
    write_goals(out, report);
    fprintf(out, "\n");
    write_scenarios(out, report->sheet);
    ck_assert_int_eq(fclose(out), 0);
}

static void write_number(FILE *out, const char *key, double value, int digits)
{
    if (isnan(value))
        fprintf(out, "\"%s\": null", key);
    else
        fprintf(out, "\"%s\": %.*f", key, digits, value);
}

/* Write the median and the value of each round. */
static void write_figure(FILE *out, const struct sheet *sheet, unsigned row, enum figure figure)
{
    const struct figure_info *info = &figure_infos[figure];
    fprintf(out, ",\n   \"%s\": {", info->key);
    write_number(out, "median", sheet_median(sheet, row, figure), info->digits);
    fprintf(out, ", \"rounds\": [");
    for (unsigned round = 0; round < sheet->rounds[row]; round++)
        fprintf(out, "%s%.*f", round > 0 ? ", " : "", info->digits,
                sheet->values[row][figure][round]);
    fprintf(out, "]}");
}

void report_json(const struct report *report, const char *path)
{
    const struct sheet *sheet = report->sheet;
    FILE *out = create(path);
    const char *comma = "";
    fprintf(out, "{\"of\": \"%s\",\n \"scenarios\": {", report->of);
    for (unsigned row = 0; row < sheet->row_count; row++) {
        if (sheet->rounds[row] == 0)
            continue;
        fprintf(out, "%s\n  \"%s\": {\"rounds\": %u", comma, sheet->names[row], sheet->rounds[row]);
        for (unsigned figure = 0; figure < FIGURE_COUNT; figure++)
            if (!isnan(sheet_median(sheet, row, figure)))
                write_figure(out, sheet, row, figure);
        fprintf(out, "}");
        comma = ",";
    }
    bool with_proxy = has_proxy(report);
    fprintf(out, "},\n \"goals\": [");
    for (unsigned i = 0; i < report->goal_count; i++) {
        const struct goal *goal = &report->goals[i];
        fprintf(out, "%s\n  {\"goal\": \"%s\", ", i > 0 ? "," : "", goal->text);
        write_number(out, "measured", goal_value(report, goal), goal_digits(goal));
        fprintf(out, ", ");
        if (with_proxy) {
            write_number(out, "proxy", proxy_value(report, goal), goal_digits(goal));
            fprintf(out, ", ");
        }
        write_number(out, goal->sense == AT_LEAST ? "at_least" : "at_most", goal->limit, 2);
        fprintf(out, "}");
    }
    fprintf(out, "\n]}\n");
    ck_assert_int_eq(fclose(out), 0);
}
