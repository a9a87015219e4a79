#include "tests/bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "tests/runner.h"

const char *bench_setting(const char *name)
{
    const char *text = getenv(name);
    return text != NULL && text[0] != '\0' ? text : NULL;
}

static bool is_wanted(const struct arena *arena, const struct scenario *scenario, unsigned round)
{
    const char *only = bench_setting("BENCH_ONLY");
    if (scenario->soak && (arena->soak_ns == 0 || round > 0))
        return false;
    return only == NULL || strstr(scenario->name, only) != NULL;
}

static void run_round(const struct bench *bench, struct arena *arena, struct sheet *sheet,
                      unsigned round)
{
    for (unsigned i = 0; i < bench->scenario_count; i++) {
        const struct scenario *scenario = &bench->scenarios[i];
        double values[FIGURE_COUNT];
        if (!is_wanted(arena, scenario, round))
            continue;
        fprintf(stderr, "\rround %u: %-40s", round + 1, scenario->name);
        scenario_run(arena, scenario, values);
        for (unsigned figure = 0; figure < FIGURE_COUNT; figure++)
            sheet->values[i][figure][round] = values[figure];
        sheet->rounds[i] = round + 1;
    }
}

void bench_describe(unsigned rounds, unsigned round_ms, double load, char of[BENCH_OF])
{
    char date[16], processor[96] = "unknown";
    struct utsname kernel;
    time_t now = time(NULL);
    strftime(date, sizeof(date), "%Y-%m-%d", gmtime(&now));
    uname(&kernel);
    FILE *info = fopen("/proc/cpuinfo", "re");
    char line[256];
    while (info != NULL && fgets(line, sizeof(line), info) != NULL)
        if (sscanf(line, "model name : %95[^\n]", processor) == 1)
            break;
    if (info != NULL)
        fclose(info);
    const char *commit = bench_setting("BENCH_COMMIT");
    snprintf(of, BENCH_OF,
             "%s, commit %s, %ld x %s, Linux %s, load %.1f before, median of %u rounds of %u ms",
             date, commit != NULL ? commit : "unknown", sysconf(_SC_NPROCESSORS_ONLN), processor,
             kernel.release, load, rounds, round_ms);
}

void bench_run(const struct bench *bench, struct arena *arena)
{
    static struct sheet sheet;
    char of[BENCH_OF];
    double load = 0;
    unsigned rounds = runner_setting("BENCH_ROUNDS", 5);
    ck_assert_uint_le(rounds, SHEET_ROUNDS);
    ck_assert_uint_le(bench->scenario_count, SHEET_ROWS);
    arena->for_ns = runner_setting("BENCH_MS", 1000) * INT64_C(1000000);
    arena->soak_ns = runner_setting("BENCH_SOAK", 0) * INT64_C(1000000000);
    sheet.row_count = bench->scenario_count;
    for (unsigned i = 0; i < bench->scenario_count; i++)
        sheet.names[i] = bench->scenarios[i].name;
    getloadavg(&load, 1);
    for (unsigned round = 0; round < rounds; round++)
        run_round(bench, arena, &sheet, round);
    fprintf(stderr, "\r%60s\r", "");
    if (bench->complete != NULL)
        bench->complete(&sheet);
    bench_describe(rounds, (unsigned)(arena->for_ns / 1000000), load, of);
    struct report report = {&sheet, bench->goals, bench->goal_count, of};
    report_print(&report);
    if (bench_setting("BENCH_MARKDOWN") != NULL)
        report_markdown(&report, bench_setting("BENCH_MARKDOWN"));
    if (bench_setting("BENCH_JSON") != NULL)
        report_json(&report, bench_setting("BENCH_JSON"));
}
