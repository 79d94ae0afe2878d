/* callbacks.c: Fortran procedures that MPI calls. C's operators and error handlers have no argument that
 * identifies a procedure, so each distinct procedure is assigned one of a fixed number of C functions.
 * Attribute functions and generalized requests have an extra state, which contains the procedures. The
 * modules mpi and mpi_f08 pass procedures in the same way.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "fortran/callbacks.h"

#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Returns the index of a procedure in the table, which is added if absent; -1 if the table is full. */
static int find_or_add_procedure(fort_procedure *table, int size, fort_procedure procedure, const char *what)
{
    int slot = 0;
    pthread_mutex_lock(&lock);
    while (slot < size && table[slot] && table[slot] != procedure)
        slot++;
    if (slot < size)
        table[slot] = procedure;
    pthread_mutex_unlock(&lock);
    if (slot < size)
        return slot;
    fprintf(stderr, "Fishplate: more than %d different Fortran procedures as %s\n", size, what);
    return -1;
}

/* Expand M for 8 or 64 octal numbers, for example M(000) to M(077). */
#define EIGHT(M, n) M(n##0) M(n##1) M(n##2) M(n##3) M(n##4) M(n##5) M(n##6) M(n##7)
#define SIXTY_FOUR(M, n) \
    EIGHT(M, n##0)       \
    EIGHT(M, n##1) EIGHT(M, n##2) EIGHT(M, n##3) EIGHT(M, n##4) EIGHT(M, n##5) EIGHT(M, n##6) EIGHT(M, n##7)

#define OPS 256
static fort_procedure op_procedures[OPS], op_procedures_c[OPS];

static void call_op_procedure(int slot, void *in, void *inout, int *len, MPI_Datatype *dtype)
{
    MPI_Fint type = PMPI_Type_c2f(*dtype);
    ((void (*)(void *, void *, int *, MPI_Fint *))op_procedures[slot])(in, inout, len, &type);
}

static void call_op_procedure_c(int slot, void *in, void *inout, MPI_Count *len, MPI_Datatype *dtype)
{
    MPI_Fint type = PMPI_Type_c2f(*dtype);
    ((void (*)(void *, void *, MPI_Count *, MPI_Fint *))op_procedures_c[slot])(in, inout, len, &type);
}

#define OP(n)                                                                        \
    static void op_##n(void *in, void *inout, int *len, MPI_Datatype *dtype)         \
    {                                                                                \
        call_op_procedure(n, in, inout, len, dtype);                                 \
    }                                                                                \
    static void op_c_##n(void *in, void *inout, MPI_Count *len, MPI_Datatype *dtype) \
    {                                                                                \
        call_op_procedure_c(n, in, inout, len, dtype);                               \
    }
SIXTY_FOUR(OP, 00)
SIXTY_FOUR(OP, 01)
SIXTY_FOUR(OP, 02)
SIXTY_FOUR(OP, 03)
#define OP_NAME(n)   op_##n,
#define OP_C_NAME(n) op_c_##n,
static MPI_User_function *const op_functions[OPS] = {SIXTY_FOUR(OP_NAME, 00) SIXTY_FOUR(OP_NAME, 01)
                                                         SIXTY_FOUR(OP_NAME, 02) SIXTY_FOUR(OP_NAME, 03)};
static MPI_User_function_c *const op_functions_c[OPS] = {
    SIXTY_FOUR(OP_C_NAME, 00) SIXTY_FOUR(OP_C_NAME, 01) SIXTY_FOUR(OP_C_NAME, 02) SIXTY_FOUR(OP_C_NAME, 03)};

MPI_User_function *fort_op(fort_procedure procedure)
{
    int slot = find_or_add_procedure(op_procedures, OPS, procedure, "operators");
    return slot < 0 ? NULL : op_functions[slot];
}

MPI_User_function_c *fort_op_c(fort_procedure procedure)
{
    int slot = find_or_add_procedure(op_procedures_c, OPS, procedure, "operators");
    return slot < 0 ? NULL : op_functions_c[slot];
}

#define HANDLERS 64
#define HANDLER_KIND(kind, type)                                                    \
    static fort_procedure kind##_procedures[HANDLERS];                              \
    static void kind##_call(int slot, type handle, int *code)                       \
    {                                                                               \
        MPI_Fint number = P##type##_c2f(handle);                                    \
        ((void (*)(MPI_Fint *, MPI_Fint *))kind##_procedures[slot])(&number, code); \
    }
HANDLER_KIND(comm, MPI_Comm)
HANDLER_KIND(win, MPI_Win)
HANDLER_KIND(file, MPI_File)
HANDLER_KIND(session, MPI_Session)

#define HANDLER(n)                                               \
    static void comm_##n(MPI_Comm *handle, int *code, ...)       \
    {                                                            \
        comm_call(n, *handle, code);                             \
    }                                                            \
    static void win_##n(MPI_Win *handle, int *code, ...)         \
    {                                                            \
        win_call(n, *handle, code);                              \
    }                                                            \
    static void file_##n(MPI_File *handle, int *code, ...)       \
    {                                                            \
        file_call(n, *handle, code);                             \
    }                                                            \
    static void session_##n(MPI_Session *handle, int *code, ...) \
    {                                                            \
        session_call(n, *handle, code);                          \
    }
SIXTY_FOUR(HANDLER, 00)

#define COMM_NAME(n)    comm_##n,
#define WIN_NAME(n)     win_##n,
#define FILE_NAME(n)    file_##n,
#define SESSION_NAME(n) session_##n,
#define HANDLER_TABLE(kind, type, name)                                                             \
    type *fort_##kind##_handler(fort_procedure procedure)                                           \
    {                                                                                               \
        static type *const functions[HANDLERS] = {SIXTY_FOUR(name, 00)};                            \
        int slot = find_or_add_procedure(kind##_procedures, HANDLERS, procedure, "error handlers"); \
        return slot < 0 ? NULL : functions[slot];                                                   \
    }
HANDLER_TABLE(comm, MPI_Comm_errhandler_function, COMM_NAME)
HANDLER_TABLE(win, MPI_Win_errhandler_function, WIN_NAME)
HANDLER_TABLE(file, MPI_File_errhandler_function, FILE_NAME)
HANDLER_TABLE(session, MPI_Session_errhandler_function, SESSION_NAME)

/* Attribute values set from Fortran. C expects a pointer to the value, Fortran the value itself, so the value
 * is stored in a cell of this library. An attribute that is not the address of a cell was set from C. */
#define CELLS 1024
struct chunk {
    struct chunk *next;
    union cell {
        MPI_Aint value;
        union cell *free;
    } cells[CELLS];
};
static struct chunk *chunks;
static union cell *free_cells;

void *fort_cell_new(MPI_Aint value)
{
    pthread_mutex_lock(&lock);
    if (!free_cells) {
        struct chunk *chunk = calloc(1, sizeof(*chunk));
        if (!chunk)
            abort();
        for (int i = 0; i < CELLS; i++) {
            chunk->cells[i].free = free_cells;
            free_cells = &chunk->cells[i];
        }
        chunk->next = chunks;
        chunks = chunk;
    }
    union cell *cell = free_cells;
    free_cells = cell->free;
    pthread_mutex_unlock(&lock);
    cell->value = value;
    return cell;
}

static bool is_attribute_cell(const void *address)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (const struct chunk *chunk = chunks; chunk && !found; chunk = chunk->next)
        found =
            (const union cell *)address >= chunk->cells && (const union cell *)address < chunk->cells + CELLS;
    pthread_mutex_unlock(&lock);
    return found;
}

MPI_Aint fort_cell_value(const void *attribute)
{
    return is_attribute_cell(attribute) ? ((const union cell *)attribute)->value : (MPI_Aint)attribute;
}

static void cell_free(void *attribute)
{
    if (!is_attribute_cell(attribute))
        return;
    pthread_mutex_lock(&lock);
    ((union cell *)attribute)->free = free_cells;
    free_cells = attribute;
    pthread_mutex_unlock(&lock);
}

/* The procedures of a keyval. Never freed: attributes may use a keyval that the program has freed. */
struct key {
    struct key *next; /* list of all keys, so that a leak checker finds them */
    fort_procedure copy, delete;
    MPI_Aint state;
    bool narrow; /* MPI_Keyval_create: INTEGER instead of an address-sized one */
};

static struct key *keys;

struct key *fort_key_new(fort_procedure copy, fort_procedure delete, MPI_Aint state, bool narrow)
{
    struct key *key = malloc(sizeof(*key));
    if (!key)
        abort();
    pthread_mutex_lock(&lock);
    *key = (struct key){keys, copy, delete, state, narrow};
    keys = key;
    pthread_mutex_unlock(&lock);
    return key;
}

static int key_copy(const struct key *key, MPI_Fint object, MPI_Fint number, void *in, void *out, int *flag)
{
    MPI_Fint rc = MPI_SUCCESS, yes = 0;
    MPI_Aint state = key->state, old = fort_cell_value(in), value = 0;
    if (key->narrow) {
        MPI_Fint state4 = (MPI_Fint)state, old4 = (MPI_Fint)old, value4 = 0;
        ((void (*)(MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *,
                   MPI_Fint *))key->copy)(&object, &number, &state4, &old4, &value4, &yes, &rc);
        value = value4;
    } else {
        ((void (*)(MPI_Fint *, MPI_Fint *, MPI_Aint *, MPI_Aint *, MPI_Aint *, MPI_Fint *,
                   MPI_Fint *))key->copy)(&object, &number, &state, &old, &value, &yes, &rc);
    }
    *flag = yes != 0;
    if (rc == MPI_SUCCESS && yes)
        *(void **)out = fort_cell_new(value);
    return rc;
}

static int key_delete(const struct key *key, MPI_Fint object, MPI_Fint number, void *attribute)
{
    MPI_Fint rc = MPI_SUCCESS;
    MPI_Aint state = key->state, value = fort_cell_value(attribute);
    if (key->narrow) {
        MPI_Fint state4 = (MPI_Fint)state, value4 = (MPI_Fint)value;
        ((void (*)(MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *))key->delete)(
            &object, &number, &value4, &state4, &rc);
    } else {
        ((void (*)(MPI_Fint *, MPI_Fint *, MPI_Aint *, MPI_Aint *, MPI_Fint *))key->delete)(
            &object, &number, &value, &state, &rc);
    }
    if (rc == MPI_SUCCESS)
        cell_free(attribute);
    return rc;
}

#define KEY_FUNCTIONS(kind, type, c2f)                                                           \
    int fort_##kind##_copy(type object, int number, void *state, void *in, void *out, int *flag) \
    {                                                                                            \
        return key_copy(state, c2f(object), number, in, out, flag);                              \
    }                                                                                            \
    int fort_##kind##_delete(type object, int number, void *attribute, void *state)              \
    {                                                                                            \
        return key_delete(state, c2f(object), number, attribute);                                \
    }
KEY_FUNCTIONS(comm, MPI_Comm, PMPI_Comm_c2f)
KEY_FUNCTIONS(type, MPI_Datatype, PMPI_Type_c2f)
KEY_FUNCTIONS(win, MPI_Win, PMPI_Win_c2f)

/* Generalized requests. The procedures get the variable that the program passed as extra_state, by reference:
 * they may change it, and they see what the program has put there since. */
struct grequest {
    fort_procedure query, free, cancel;
    MPI_Aint *state;
};

void *fort_grequest_new(fort_procedure query, fort_procedure free_fn, fort_procedure cancel, MPI_Aint *state)
{
    struct grequest *g = malloc(sizeof(*g));
    if (!g)
        abort();
    *g = (struct grequest){query, free_fn, cancel, state};
    return g;
}

int fort_grequest_query(void *state, MPI_Status *status)
{
    struct grequest *g = state;
    MPI_Fint rc = MPI_SUCCESS;
    ((void (*)(MPI_Aint *, MPI_Status *, MPI_Fint *))g->query)(g->state, status, &rc);
    return rc;
}

int fort_grequest_free(void *state)
{
    struct grequest *g = state;
    MPI_Fint rc = MPI_SUCCESS;
    ((void (*)(MPI_Aint *, MPI_Fint *))g->free)(g->state, &rc);
    free(g);
    return rc;
}

int fort_grequest_cancel(void *state, int complete)
{
    struct grequest *g = state;
    MPI_Fint rc = MPI_SUCCESS, flag = complete != 0;
    ((void (*)(MPI_Aint *, MPI_Fint *, MPI_Fint *))g->cancel)(g->state, &flag, &rc);
    return rc;
}

struct datarep {
    fort_procedure read, write, extent;
    MPI_Aint *state;
};

void *fort_datarep_new(fort_procedure read, fort_procedure write, fort_procedure extent, MPI_Aint *state)
{
    struct datarep *d = malloc(sizeof(*d));
    if (!d)
        abort();
    *d = (struct datarep){read, write, extent, state};
    return d;
}

static int call_conversion(fort_procedure procedure, MPI_Aint *state, void *user, MPI_Datatype datatype,
                           int count, void *file, MPI_Offset position)
{
    MPI_Fint rc = MPI_SUCCESS, type = PMPI_Type_c2f(datatype);
    ((void (*)(void *, MPI_Fint *, MPI_Fint *, void *, MPI_Offset *, MPI_Aint *, MPI_Fint *))procedure)(
        user, &type, &count, file, &position, state, &rc);
    return rc;
}

static int call_conversion_c(fort_procedure procedure, MPI_Aint *state, void *user, MPI_Datatype datatype,
                             MPI_Count count, void *file, MPI_Offset position)
{
    MPI_Fint rc = MPI_SUCCESS, type = PMPI_Type_c2f(datatype);
    ((void (*)(void *, MPI_Fint *, MPI_Count *, void *, MPI_Offset *, MPI_Aint *, MPI_Fint *))procedure)(
        user, &type, &count, file, &position, state, &rc);
    return rc;
}

int fort_datarep_read(void *user, MPI_Datatype datatype, int count, void *file, MPI_Offset position,
                      void *state)
{
    const struct datarep *d = state;
    return call_conversion(d->read, d->state, user, datatype, count, file, position);
}

int fort_datarep_write(void *user, MPI_Datatype datatype, int count, void *file, MPI_Offset position,
                       void *state)
{
    const struct datarep *d = state;
    return call_conversion(d->write, d->state, user, datatype, count, file, position);
}

int fort_datarep_read_c(void *user, MPI_Datatype datatype, MPI_Count count, void *file, MPI_Offset position,
                        void *state)
{
    const struct datarep *d = state;
    return call_conversion_c(d->read, d->state, user, datatype, count, file, position);
}

int fort_datarep_write_c(void *user, MPI_Datatype datatype, MPI_Count count, void *file, MPI_Offset position,
                         void *state)
{
    const struct datarep *d = state;
    return call_conversion_c(d->write, d->state, user, datatype, count, file, position);
}

int fort_datarep_extent(MPI_Datatype datatype, MPI_Aint *extent, void *state)
{
    const struct datarep *d = state;
    MPI_Fint rc = MPI_SUCCESS, type = PMPI_Type_c2f(datatype);
    ((void (*)(MPI_Fint *, MPI_Aint *, MPI_Aint *, MPI_Fint *))d->extent)(&type, extent, d->state, &rc);
    return rc;
}
