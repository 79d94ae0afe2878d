/* procedures.c: the Fortran procedures that a table cannot describe: callbacks, attributes, and those whose
 * arguments differ from C in more than their types. Compiled twice, see fort.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "fortran/callbacks.h"

void N(mpi_init_)(MPI_Fint *ierror)
{
    FORT_RETURN(C(MPI_Init)(NULL, NULL));
}
FORT_BOTH(mpi_init, MPI_INIT)

void N(mpi_init_thread_)(const MPI_Fint *required, MPI_Fint *provided, MPI_Fint *ierror)
{
    FORT_RETURN(C(MPI_Init_thread)(NULL, NULL, *required, provided));
}
FORT_BOTH(mpi_init_thread, MPI_INIT_THREAD)

void N(mpi_info_create_env_)(MPI_Fint *info, MPI_Fint *ierror)
{
    MPI_Info made = MPI_INFO_NULL;
    int rc = C(MPI_Info_create_env)(0, NULL, &made);
    *info = PMPI_Info_c2f(made);
    FORT_RETURN(rc);
}
FORT_BOTH(mpi_info_create_env, MPI_INFO_CREATE_ENV)

/* MPI_PCONTROL has no ierror: only the first argument may be accessed. */
void N(mpi_pcontrol_)(const MPI_Fint *level)
{
    C(MPI_Pcontrol)(*level);
}
FORT_BOTH(mpi_pcontrol, MPI_PCONTROL)

double N(mpi_wtime_)(void)
{
    return C(MPI_Wtime)();
}
FORT_BOTH(mpi_wtime, MPI_WTIME)

double N(mpi_wtick_)(void)
{
    return C(MPI_Wtick)();
}
FORT_BOTH(mpi_wtick, MPI_WTICK)

MPI_Aint N(mpi_aint_add_)(const MPI_Aint *base, const MPI_Aint *disp)
{
    return C(MPI_Aint_add)(*base, *disp);
}
FORT_BOTH(mpi_aint_add, MPI_AINT_ADD)

MPI_Aint N(mpi_aint_diff_)(const MPI_Aint *addr1, const MPI_Aint *addr2)
{
    return C(MPI_Aint_diff)(*addr1, *addr2);
}
FORT_BOTH(mpi_aint_diff, MPI_AINT_DIFF)

/* Has no effect: the compiler must assume that the call changes the buffer. */
void N(mpi_f_sync_reg_)(void *buf)
{
    (void)buf;
}
FORT_SPELLINGS(mpi_f_sync_reg, MPI_F_SYNC_REG)
FORT_ALIAS(N(mpi_f_sync_reg_f08ts_), N(mpi_f_sync_reg_))

/* The size of one element of an array. Only Fortran has this function, and it is deprecated. */
void N(mpi_sizeof_f08ts_)(const CFI_cdesc_t *x, MPI_Fint *size, MPI_Fint *ierror)
{
    *size = (MPI_Fint)x->elem_len;
    FORT_RETURN(MPI_SUCCESS);
}

void N(mpi_op_create_)(fort_procedure user_fn, const MPI_Fint *commute, MPI_Fint *op, MPI_Fint *ierror)
{
    MPI_Op made = MPI_OP_NULL;
    int rc = C(MPI_Op_create)(fort_op(user_fn), *commute != 0, &made);
    *op = PMPI_Op_c2f(made);
    FORT_RETURN(rc);
}
FORT_BOTH(mpi_op_create, MPI_OP_CREATE)

void N(mpi_op_create_c_f08_)(fort_procedure user_fn, const MPI_Fint *commute, MPI_Fint *op, MPI_Fint *ierror)
{
    MPI_Op made = MPI_OP_NULL;
    int rc = C(MPI_Op_create_c)(fort_op_c(user_fn), *commute != 0, &made);
    *op = PMPI_Op_c2f(made);
    FORT_RETURN(rc);
}

#define CREATE_ERRHANDLER(low, up, function, handler)                                  \
    void N(low##_)(fort_procedure procedure, MPI_Fint * errhandler, MPI_Fint * ierror) \
    {                                                                                  \
        MPI_Errhandler made = MPI_ERRHANDLER_NULL;                                     \
        int rc = C(function)(handler(procedure), &made);                               \
        *errhandler = PMPI_Errhandler_c2f(made);                                       \
        FORT_RETURN(rc);                                                               \
    }                                                                                  \
    FORT_BOTH(low, up)
CREATE_ERRHANDLER(mpi_comm_create_errhandler, MPI_COMM_CREATE_ERRHANDLER, MPI_Comm_create_errhandler,
                  fort_comm_handler)
CREATE_ERRHANDLER(mpi_win_create_errhandler, MPI_WIN_CREATE_ERRHANDLER, MPI_Win_create_errhandler,
                  fort_win_handler)
CREATE_ERRHANDLER(mpi_file_create_errhandler, MPI_FILE_CREATE_ERRHANDLER, MPI_File_create_errhandler,
                  fort_file_handler)
CREATE_ERRHANDLER(mpi_session_create_errhandler, MPI_SESSION_CREATE_ERRHANDLER, MPI_Session_create_errhandler,
                  fort_session_handler)

void N(mpi_grequest_start_)(fort_procedure query_fn, fort_procedure free_fn, fort_procedure cancel_fn,
                            MPI_Aint *extra_state, MPI_Fint *request, MPI_Fint *ierror)
{
    MPI_Request made = MPI_REQUEST_NULL;
    void *state = fort_grequest_new(query_fn, free_fn, cancel_fn, extra_state);
    int rc =
        C(MPI_Grequest_start)(fort_grequest_query, fort_grequest_free, fort_grequest_cancel, state, &made);
    if (rc)
        free(state);
    *request = PMPI_Request_c2f(made);
    FORT_RETURN(rc);
}
FORT_BOTH(mpi_grequest_start, MPI_GREQUEST_START)

/* MPI_CONVERSION_FN_NULL and its large-count form: never called, only compared by address. */
void mpi_conversion_fn_null_(void);
void mpi_conversion_fn_null_c_(void);
#ifndef PROFILING
void mpi_conversion_fn_null_(void)
{
}
void mpi_conversion_fn_null_c_(void)
{
}
#endif

/* Body of both registrations: calls `function` with the conversion functions `read` and `write`, or with NULL
 * where the program passed `null`. */
#define REGISTER_DATAREP(function, null, read, write)                                            \
    char *name = fort_string(datarep, datarep_len);                                              \
    void *state = fort_datarep_new(read_fn, write_fn, extent_fn, extra_state);                   \
    int rc = name ? C(function)(name, read_fn == (null) ? NULL : (read),                         \
                                write_fn == (null) ? NULL : (write), fort_datarep_extent, state) \
                  : MPI_ERR_NO_MEM;                                                              \
    free(name);                                                                                  \
    if (rc)                                                                                      \
        free(state);                                                                             \
    FORT_RETURN(rc)

void N(mpi_register_datarep_)(const char *datarep, fort_procedure read_fn, fort_procedure write_fn,
                              fort_procedure extent_fn, MPI_Aint *extra_state, MPI_Fint *ierror,
                              size_t datarep_len)
{
    REGISTER_DATAREP(MPI_Register_datarep, mpi_conversion_fn_null_, fort_datarep_read, fort_datarep_write);
}
FORT_BOTH(mpi_register_datarep, MPI_REGISTER_DATAREP)

void N(mpi_register_datarep_c_f08_)(const char *datarep, fort_procedure read_fn, fort_procedure write_fn,
                                    fort_procedure extent_fn, MPI_Aint *extra_state, MPI_Fint *ierror,
                                    size_t datarep_len)
{
    REGISTER_DATAREP(MPI_Register_datarep_c, mpi_conversion_fn_null_c_, fort_datarep_read_c,
                     fort_datarep_write_c);
}

#define CREATE_KEYVAL(low, up, function, kind)                                           \
    void N(low##_)(fort_procedure copy_fn, fort_procedure delete_fn, MPI_Fint * keyval,  \
                   const MPI_Aint *state, MPI_Fint *ierror)                              \
    {                                                                                    \
        void *key = fort_key_new(copy_fn, delete_fn, *state, false);                     \
        FORT_RETURN(C(function)(fort_##kind##_copy, fort_##kind##_delete, keyval, key)); \
    }                                                                                    \
    FORT_BOTH(low, up)
CREATE_KEYVAL(mpi_comm_create_keyval, MPI_COMM_CREATE_KEYVAL, MPI_Comm_create_keyval, comm)
CREATE_KEYVAL(mpi_type_create_keyval, MPI_TYPE_CREATE_KEYVAL, MPI_Type_create_keyval, type)
CREATE_KEYVAL(mpi_win_create_keyval, MPI_WIN_CREATE_KEYVAL, MPI_Win_create_keyval, win)

void N(mpi_keyval_create_)(fort_procedure copy_fn, fort_procedure delete_fn, MPI_Fint *keyval,
                           const MPI_Fint *state, MPI_Fint *ierror)
{
    void *key = fort_key_new(copy_fn, delete_fn, *state, true);
    FORT_RETURN(C(MPI_Keyval_create)(fort_comm_copy, fort_comm_delete, keyval, key));
}
FORT_SPELLINGS(mpi_keyval_create, MPI_KEYVAL_CREATE)

#define SET_ATTR(low, up, function, f2c)                                                                    \
    void N(low##_)(const MPI_Fint *object, const MPI_Fint *keyval, const MPI_Aint *value, MPI_Fint *ierror) \
    {                                                                                                       \
        FORT_RETURN(C(function)(f2c(*object), *keyval, fort_cell_new(*value)));                             \
    }                                                                                                       \
    FORT_BOTH(low, up)
SET_ATTR(mpi_comm_set_attr, MPI_COMM_SET_ATTR, MPI_Comm_set_attr, PMPI_Comm_f2c)
SET_ATTR(mpi_type_set_attr, MPI_TYPE_SET_ATTR, MPI_Type_set_attr, PMPI_Type_f2c)
SET_ATTR(mpi_win_set_attr, MPI_WIN_SET_ATTR, MPI_Win_set_attr, PMPI_Win_f2c)

void N(mpi_attr_put_)(const MPI_Fint *comm, const MPI_Fint *keyval, const MPI_Fint *value, MPI_Fint *ierror)
{
    FORT_RETURN(C(MPI_Attr_put)(PMPI_Comm_f2c(*comm), *keyval, fort_cell_new(*value)));
}
FORT_SPELLINGS(mpi_attr_put, MPI_ATTR_PUT)

/* C gets a pointer to a predefined attribute's value, Fortran the value; a window's base is an address in
 * both. */
static MPI_Aint attribute_value(int keyval, void *attribute)
{
    switch (keyval) {
    case MPI_TAG_UB:
    case MPI_IO:
    case MPI_HOST:
    case MPI_WTIME_IS_GLOBAL:
    case MPI_APPNUM:
    case MPI_LASTUSEDCODE:
    case MPI_UNIVERSE_SIZE:
    case MPI_WIN_DISP_UNIT:
    case MPI_WIN_CREATE_FLAVOR:
    case MPI_WIN_MODEL:
        return *(int *)attribute;
    case MPI_WIN_SIZE:
        return *(MPI_Aint *)attribute;
    default:
        return fort_cell_value(attribute);
    }
}

#define GET_ATTR(low, up, function, f2c, type)                                                  \
    void N(low##_)(const MPI_Fint *object, const MPI_Fint *keyval, type *value, MPI_Fint *flag, \
                   MPI_Fint *ierror)                                                            \
    {                                                                                           \
        void *attribute = NULL;                                                                 \
        int found = 0, rc = C(function)(f2c(*object), *keyval, &attribute, &found);             \
        if (!rc)                                                                                \
            *flag = found != 0;                                                                 \
        if (!rc && found)                                                                       \
            *value = (type)attribute_value(*keyval, attribute);                                 \
        FORT_RETURN(rc);                                                                        \
    }
GET_ATTR(mpi_comm_get_attr, MPI_COMM_GET_ATTR, MPI_Comm_get_attr, PMPI_Comm_f2c, MPI_Aint)
FORT_BOTH(mpi_comm_get_attr, MPI_COMM_GET_ATTR)
GET_ATTR(mpi_type_get_attr, MPI_TYPE_GET_ATTR, MPI_Type_get_attr, PMPI_Type_f2c, MPI_Aint)
FORT_BOTH(mpi_type_get_attr, MPI_TYPE_GET_ATTR)
GET_ATTR(mpi_win_get_attr, MPI_WIN_GET_ATTR, MPI_Win_get_attr, PMPI_Win_f2c, MPI_Aint)
FORT_BOTH(mpi_win_get_attr, MPI_WIN_GET_ATTR)
GET_ATTR(mpi_attr_get, MPI_ATTR_GET, MPI_Attr_get, PMPI_Comm_f2c, MPI_Fint)
FORT_SPELLINGS(mpi_attr_get, MPI_ATTR_GET)

/* Strings with a length argument: the length in Fortran does not include C's terminating zero. */

void N(mpi_info_get_)(const MPI_Fint *info, const char *key, const MPI_Fint *valuelen, char *value,
                      MPI_Fint *flag, MPI_Fint *ierror, size_t key_len, size_t value_len)
{
    char *name = fort_string_stripped(key, key_len), *text = calloc(fort_length(*valuelen) + 1, 1);
    int found = 0,
        rc = text ? C(MPI_Info_get)(PMPI_Info_f2c(*info), name, *valuelen, text, &found) : MPI_ERR_NO_MEM;
    if (!rc)
        *flag = found != 0;
    if (!rc && found)
        fort_string_out(value, value_len, text);
    free(text);
    free(name);
    FORT_RETURN(rc);
}
FORT_BOTH(mpi_info_get, MPI_INFO_GET)

void N(mpi_info_get_string_)(const MPI_Fint *info, const char *key, MPI_Fint *buflen, char *value,
                             MPI_Fint *flag, MPI_Fint *ierror, size_t key_len, size_t value_len)
{
    int room = *buflen > 0 ? *buflen + 1 : 0, requested = room;
    char *name = fort_string_stripped(key, key_len), *text = calloc((size_t)room + 1, 1);
    int found = 0,
        rc = text ? C(MPI_Info_get_string)(PMPI_Info_f2c(*info), name, &room, text, &found) : MPI_ERR_NO_MEM;
    if (!rc)
        *flag = found != 0;
    if (!rc && found) {
        *buflen = room - 1;
        if (requested)
            fort_string_out(value, value_len, text);
    }
    free(text);
    free(name);
    FORT_RETURN(rc);
}
FORT_BOTH(mpi_info_get_string, MPI_INFO_GET_STRING)

void N(mpi_session_get_nth_pset_)(const MPI_Fint *session, const MPI_Fint *info, const MPI_Fint *n,
                                  MPI_Fint *pset_len, char *pset_name, MPI_Fint *ierror, size_t pset_name_len)
{
    int room = *pset_len > 0 ? *pset_len + 1 : 0, requested = room;
    char *text = calloc((size_t)room + 1, 1);
    int rc =
        text ? C(MPI_Session_get_nth_pset)(PMPI_Session_f2c(*session), PMPI_Info_f2c(*info), *n, &room, text)
             : MPI_ERR_NO_MEM;
    if (!rc)
        *pset_len = room - 1;
    if (!rc && requested)
        fort_string_out(pset_name, pset_name_len, text);
    free(text);
    FORT_RETURN(rc);
}
FORT_BOTH(mpi_session_get_nth_pset, MPI_SESSION_GET_NTH_PSET)

/* Detaching a buffer: only mpi_f08 can represent an address and sets buffer_addr; mpif.h leaves it unset. */

void N(mpi_buffer_detach_)(void *buffer_addr, MPI_Fint *size, MPI_Fint *ierror)
{
    void *address;
    (void)buffer_addr;
    FORT_RETURN(C(MPI_Buffer_detach)(&address, size));
}
FORT_SPELLINGS(mpi_buffer_detach, MPI_BUFFER_DETACH)

#define DETACH_F08(name, function, type)                           \
    void N(name)(void **buffer_addr, type *size, MPI_Fint *ierror) \
    {                                                              \
        FORT_RETURN(C(function)(buffer_addr, size));               \
    }
DETACH_F08(mpi_buffer_detach_f08_, MPI_Buffer_detach, MPI_Fint)
DETACH_F08(mpi_buffer_detach_c_f08_, MPI_Buffer_detach_c, MPI_Count)

#define DETACH_FROM(low, up, function, f2c)                                                             \
    void N(low##_)(const MPI_Fint *object, void *buffer_addr, MPI_Fint *size, MPI_Fint *ierror)         \
    {                                                                                                   \
        void *address;                                                                                  \
        (void)buffer_addr;                                                                              \
        FORT_RETURN(C(function)(f2c(*object), &address, size));                                         \
    }                                                                                                   \
    FORT_SPELLINGS(low, up)                                                                             \
    void N(low##_f08_)(const MPI_Fint *object, void **buffer_addr, MPI_Fint *size, MPI_Fint *ierror)    \
    {                                                                                                   \
        FORT_RETURN(C(function)(f2c(*object), buffer_addr, size));                                      \
    }                                                                                                   \
    void N(low##_c_f08_)(const MPI_Fint *object, void **buffer_addr, MPI_Count *size, MPI_Fint *ierror) \
    {                                                                                                   \
        FORT_RETURN(C(function##_c)(f2c(*object), buffer_addr, size));                                  \
    }
DETACH_FROM(mpi_comm_detach_buffer, MPI_COMM_DETACH_BUFFER, MPI_Comm_detach_buffer, PMPI_Comm_f2c)
DETACH_FROM(mpi_session_detach_buffer, MPI_SESSION_DETACH_BUFFER, MPI_Session_detach_buffer, PMPI_Session_f2c)

/* Specific procedures whose baseptr is a C_PTR, which has the layout of an address-sized integer. */
void N(mpi_alloc_mem_)(const MPI_Aint *, const MPI_Fint *, void *, MPI_Fint *);
void N(mpi_alloc_mem_cptr_)(const MPI_Aint *size, const MPI_Fint *info, void *baseptr, MPI_Fint *ierror)
{
    N(mpi_alloc_mem_)(size, info, baseptr, ierror);
}
void N(mpi_win_allocate_)(const MPI_Aint *, const int *, const MPI_Fint *, const MPI_Fint *, void *,
                          MPI_Fint *, MPI_Fint *);
void N(mpi_win_allocate_cptr_)(const MPI_Aint *size, const int *disp_unit, const MPI_Fint *info,
                               const MPI_Fint *comm, void *baseptr, MPI_Fint *win, MPI_Fint *ierror)
{
    N(mpi_win_allocate_)(size, disp_unit, info, comm, baseptr, win, ierror);
}
void N(mpi_win_allocate_shared_)(const MPI_Aint *, const int *, const MPI_Fint *, const MPI_Fint *, void *,
                                 MPI_Fint *, MPI_Fint *);
void N(mpi_win_allocate_shared_cptr_)(const MPI_Aint *size, const int *disp_unit, const MPI_Fint *info,
                                      const MPI_Fint *comm, void *baseptr, MPI_Fint *win, MPI_Fint *ierror)
{
    N(mpi_win_allocate_shared_)(size, disp_unit, info, comm, baseptr, win, ierror);
}
void N(mpi_win_shared_query_)(const MPI_Fint *, const int *, MPI_Aint *, int *, void *, MPI_Fint *);
void N(mpi_win_shared_query_cptr_)(const MPI_Fint *win, const int *rank, MPI_Aint *size, int *disp_unit,
                                   void *baseptr, MPI_Fint *ierror)
{
    N(mpi_win_shared_query_)(win, rank, size, disp_unit, baseptr, ierror);
}

#ifndef PROFILING
/* MPI_COMM_DUP_FN and similar constants are procedures in Fortran, without a profiling name. */
#define NULL_COPY(name, type)                                                                       \
    void name(MPI_Fint *object, MPI_Fint *keyval, type *state, type *in, type *out, MPI_Fint *flag, \
              MPI_Fint *ierror)                                                                     \
    {                                                                                               \
        (void)object, (void)keyval, (void)state, (void)in, (void)out;                               \
        *flag = 0;                                                                                  \
        *ierror = MPI_SUCCESS;                                                                      \
    }
#define DUP(name, type)                                                                             \
    void name(MPI_Fint *object, MPI_Fint *keyval, type *state, type *in, type *out, MPI_Fint *flag, \
              MPI_Fint *ierror)                                                                     \
    {                                                                                               \
        (void)object, (void)keyval, (void)state;                                                    \
        *out = *in;                                                                                 \
        *flag = 1;                                                                                  \
        *ierror = MPI_SUCCESS;                                                                      \
    }
#define NULL_DELETE(name, type)                                                               \
    void name(MPI_Fint *object, MPI_Fint *keyval, type *value, type *state, MPI_Fint *ierror) \
    {                                                                                         \
        (void)object, (void)keyval, (void)value, (void)state;                                 \
        *ierror = MPI_SUCCESS;                                                                \
    }
NULL_COPY(mpi_comm_null_copy_fn_, MPI_Aint)
DUP(mpi_comm_dup_fn_, MPI_Aint)
NULL_DELETE(mpi_comm_null_delete_fn_, MPI_Aint)
NULL_COPY(mpi_type_null_copy_fn_, MPI_Aint)
DUP(mpi_type_dup_fn_, MPI_Aint)
NULL_DELETE(mpi_type_null_delete_fn_, MPI_Aint)
NULL_COPY(mpi_win_null_copy_fn_, MPI_Aint)
DUP(mpi_win_dup_fn_, MPI_Aint)
NULL_DELETE(mpi_win_null_delete_fn_, MPI_Aint)
NULL_COPY(mpi_null_copy_fn_, MPI_Fint)
DUP(mpi_dup_fn_, MPI_Fint)
NULL_DELETE(mpi_null_delete_fn_, MPI_Fint)
#endif

/* Converts a list of strings that ends with a blank string. `step`: distance of two strings of one list. */

static char **convert_string_list(const char *from, size_t length, size_t step)
{
    size_t n = 0;
    char **words = calloc(1, sizeof(*words));
    for (; words; from += step * length) {
        char *word = fort_string_stripped(from, length);
        if (!word || !*word) {
            free(word);
            break;
        }
        char **more = realloc(words, (n + 2) * sizeof(*words));
        if (!more) {
            free(word);
            break;
        }
        words = more;
        words[n++] = word;
        words[n] = NULL;
    }
    return words;
}

static void words_free(char **words)
{
    for (char **w = words; w && *w; w++)
        free(*w);
    free(words);
}

static int *convert_errcodes(MPI_Fint *codes)
{
    return codes == mpifort_errcodes_ignore_ ? MPI_ERRCODES_IGNORE : codes;
}

void N(mpi_comm_spawn_)(const char *command, const char *argv, const MPI_Fint *maxprocs, const MPI_Fint *info,
                        const MPI_Fint *root, const MPI_Fint *comm, MPI_Fint *intercomm, MPI_Fint *codes,
                        MPI_Fint *ierror, size_t command_len, size_t argv_len)
{
    MPI_Comm made = MPI_COMM_NULL;
    char *name = fort_string_stripped(command, command_len);
    char **words = argv == mpifort_argv_null_ ? NULL : convert_string_list(argv, argv_len, 1);
    int rc = C(MPI_Comm_spawn)(name, words, *maxprocs, PMPI_Info_f2c(*info), *root, PMPI_Comm_f2c(*comm),
                               &made, convert_errcodes(codes));
    words_free(words);
    free(name);
    *intercomm = PMPI_Comm_c2f(made);
    FORT_RETURN(rc);
}
FORT_BOTH(mpi_comm_spawn, MPI_COMM_SPAWN)

/* The programs of MPI_Comm_spawn_multiple, converted to C. Arguments are valid at the root only. */
struct programs {
    int count;
    char **commands, ***argvs;
    MPI_Info *infos;
};

static void programs_free(struct programs *p)
{
    for (int i = 0; i < p->count; i++) {
        if (p->commands)
            free(p->commands[i]);
        if (p->argvs)
            words_free(p->argvs[i]);
    }
    free(p->commands);
    free(p->argvs);
    free(p->infos);
}

static void convert_programs(struct programs *p, const char *commands, size_t command_len, const char *argvs,
                             size_t argv_len, const MPI_Fint *infos)
{
    size_t n = p->count > 0 ? (size_t)p->count : 0;
    p->commands = calloc(n + 1, sizeof(*p->commands));
    p->infos = calloc(n + 1, sizeof(*p->infos));
    if (argvs != mpifort_argvs_null_)
        p->argvs = calloc(n + 1, sizeof(*p->argvs));
    for (size_t i = 0; i < n && p->commands && p->infos; i++) {
        p->commands[i] = fort_string_stripped(commands + i * command_len, command_len);
        p->infos[i] = PMPI_Info_f2c(infos[i]);
        if (p->argvs)
            p->argvs[i] = convert_string_list(argvs + i * argv_len, argv_len, n);
    }
}

void N(mpi_comm_spawn_multiple_)(const MPI_Fint *count, const char *commands, const char *argvs,
                                 const MPI_Fint *maxprocs, const MPI_Fint *infos, const MPI_Fint *root,
                                 const MPI_Fint *comm, MPI_Fint *intercomm, MPI_Fint *codes, MPI_Fint *ierror,
                                 size_t command_len, size_t argv_len)
{
    MPI_Comm made = MPI_COMM_NULL;
    int rank = -1;
    PMPI_Comm_rank(PMPI_Comm_f2c(*comm), &rank);
    struct programs p = {.count = rank == *root ? *count : 0};
    convert_programs(&p, commands, command_len, argvs, argv_len, infos);
    int rc = C(MPI_Comm_spawn_multiple)(p.count, p.commands, p.argvs ? p.argvs : MPI_ARGVS_NULL, maxprocs,
                                        p.infos, *root, PMPI_Comm_f2c(*comm), &made, convert_errcodes(codes));
    programs_free(&p);
    *intercomm = PMPI_Comm_c2f(made);
    FORT_RETURN(rc);
}
FORT_BOTH(mpi_comm_spawn_multiple, MPI_COMM_SPAWN_MULTIPLE)
