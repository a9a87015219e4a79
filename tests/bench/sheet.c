#include "tests/bench/sheet.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct figure_info figure_infos[FIGURE_COUNT] = {
#define X(name, title, key, digits) [name] = {title, key, digits},
    FIGURES(X)
#undef X
};

static int compare(const void *a, const void *b)
{
    double first = *(const double *)a, second = *(const double *)b;
    return (first > second) - (first < second);
}

static double median(double *values, unsigned count)
{
    if (count == 0)
        return NAN;
    /* qsort() cannot sort NAN. */
    for (unsigned i = 0; i < count; i++)
        if (isnan(values[i]))
            return NAN;
    qsort(values, count, sizeof(double), compare);
    return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

double sheet_median(const struct sheet *sheet, unsigned row, enum figure figure)
{
    double values[SHEET_ROUNDS];
    memcpy(values, sheet->values[row][figure], sizeof(values));
    return median(values, sheet->rounds[row]);
}

/* The index of the row; row_count if there is none. */
static unsigned find_row(const struct sheet *sheet, const char *name)
{
    unsigned row = 0;
    while (row < sheet->row_count && strcmp(sheet->names[row], name) != 0)
        row++;
    return row;
}

static unsigned find(const struct sheet *sheet, const char *name)
{
    unsigned row = find_row(sheet, name);
    ck_assert_msg(row < sheet->row_count, "there is no scenario %s", name);
    return row;
}

bool sheet_knows(const struct sheet *sheet, const char *name)
{
    return find_row(sheet, name) < sheet->row_count;
}

double sheet_largest(const struct sheet *sheet, const char *name, enum figure figure)
{
    unsigned row = find(sheet, name);
    const double *values = sheet->values[row][figure];
    double largest = sheet->rounds[row] > 0 ? values[0] : NAN;
    for (unsigned i = 1; i < sheet->rounds[row]; i++)
        if (values[i] > largest)
            largest = values[i];
    return largest;
}

double sheet_ratio(const struct sheet *sheet, const char *name, enum figure figure,
                   const char *to_name, enum figure to_figure)
{
    double ratios[SHEET_ROUNDS];
    unsigned row = find(sheet, name);
    if (to_name == NULL)
        return sheet_median(sheet, row, figure);
    unsigned to = find(sheet, to_name);
    unsigned rounds =
        sheet->rounds[row] < sheet->rounds[to] ? sheet->rounds[row] : sheet->rounds[to];
    for (unsigned i = 0; i < rounds; i++)
        ratios[i] = sheet->values[row][figure][i] / sheet->values[to][to_figure][i];
    return median(ratios, rounds);
}

bool sheet_has(const struct sheet *sheet, enum figure figure)
{
    for (unsigned row = 0; row < sheet->row_count; row++)
        if (sheet->rounds[row] > 0 && !isnan(sheet_median(sheet, row, figure)))
            return true;
    return false;
}
