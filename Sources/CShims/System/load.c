#include <stddef.h>

/* Defined by the library's face; tests of single parts are linked without it. */
__attribute__((weak)) void system_library_loaded(void);

__attribute__((constructor)) static void loaded(void)
{
    if (system_library_loaded)
        system_library_loaded();
}

/* In place of the runtime's own, which would read the program's arguments out of /proc/self/maps whenever the library is
 * loaded: the library does not ask for them. */
#ifdef SYSTEM_STATIC_SWIFT_RUNTIME
char **_swift_stdlib_getUnsafeArgvArgc(int *count);
void _swift_stdlib_overrideUnsafeArgvArgc(char **arguments, int count);

char **_swift_stdlib_getUnsafeArgvArgc(int *count)
{
    static char *none[] = {NULL};
    *count = 0;
    return none;
}

void _swift_stdlib_overrideUnsafeArgvArgc(char **arguments, int count)
{
    (void)arguments;
    (void)count;
}
#endif
