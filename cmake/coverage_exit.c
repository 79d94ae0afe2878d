/* coverage_exit.c: a wrapper of _exit, only for `make coverage`: writes the coverage counts of the process before it
 * ends. The linker redirects calls of _exit to this function (--wrap).
 *
 * SPDX-License-Identifier: Apache-2.0 */
void __gcov_dump(void);
_Noreturn void __real__exit(int status);
_Noreturn void __wrap__exit(int status);

_Noreturn void __wrap__exit(int status)
{
    __gcov_dump();
    __real__exit(status);
}
