/* coverage_exit.c: for `make coverage` alone: a process of mpiexec that ends by _exit writes what it executed first. The linker
 * sends calls of _exit here (--wrap).
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
