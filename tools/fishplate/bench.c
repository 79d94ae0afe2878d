/* bench.c: `fishplate bench`: runs the requested benchmark of bench/, or forwards to the laboratory (lab/),
 * whose studies start jobs of their own.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench/bench.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "lab.h"
#include "tools/fishplate/bench_library.h"

/* Former names of studies that are now in the laboratory. In a job `barrier` and `bcast` are tests. */
static bool is_lab_study(const char *name)
{
    static const char *const studies[] = {"ib", "papers", "logp", "rails", "kernels", "barrier", "bcast"};
    enum { STUDIES = sizeof(studies) / sizeof(studies[0]), ALSO_TESTS = 2 };
    const bool in_job = getenv("PMI_RANK") || getenv("PMIX_RANK");
    for (int i = 0; i < STUDIES - (in_job ? ALSO_TESTS : 0); i++)
        if (strcmp(studies[i], name) == 0)
            return true;
    return false;
}

int command_bench(int argc, char **argv)
{
    get_library_table();
    if (argc > 1 && is_lab_study(argv[1]))
        return command_forward_to_lab(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "io") == 0)
        return bench_io_main(&bench_library, argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "rma") == 0)
        return bench_rma_main(&bench_library, argc - 1, argv + 1);
    return bench_main(&bench_library, argc, argv);
}
