/* Defined by the library's face; tests of single parts are linked without it. */
__attribute__((weak)) void system_library_loaded(void);

__attribute__((constructor)) static void loaded(void)
{
    if (system_library_loaded)
        system_library_loaded();
}
