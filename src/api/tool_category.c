/* tool_category.c: categories: one for each layer that has variables. A control variable belongs to the layer
 * whose source file defines it, a performance variable to the layer that its name begins with. They never
 * change.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/tool.h"
#include "impl.h"

static const struct category {
    const char *name, *doc, *parent;
} layers[] = {
    {"base", "What every layer needs: logging.", NULL},
    {"boot", "How the ranks of a job learn of each other.", NULL},
    {"dt", "Datatypes and reduction operators.", NULL},
    {"net", "Moving bytes: progress and waiting.", NULL},
    {"self", "Messages of a rank to itself.", "net"},
    {"shm", "Shared memory between the ranks of a node.", "net"},
    {"ib", "InfiniBand and RoCE.", "net"},
    {"p2p", "Point-to-point messages: matching and protocols.", NULL},
    {"obj", "Communicators and other objects.", NULL},
    {"coll", "Collective operations.", NULL},
    {"rma", "One-sided communication.", NULL},
    {"io", "Files.", NULL},
    {"api", "The calls themselves.", NULL},
    {"other", "What belongs to no layer.", NULL},
};
enum { LAYERS = COUNT_OF(layers) };
enum member { MEMBER_CVAR, MEMBER_PVAR, MEMBER_EVENT };

static int layer_find(const char *name)
{
    for (int i = 0; i < LAYERS; i++)
        if (strcmp(layers[i].name, name) == 0)
            return i;
    return LAYERS - 1;
}

static int member_layer(enum member kind, int index)
{
    char layer[32];
    switch (kind) {
    case MEMBER_CVAR:
        return layer_find(tool_cvar_layer(index));
    case MEMBER_PVAR:
        tool_pvar_layer(index, layer, sizeof(layer));
        return layer_find(layer);
    default:
        return layer_find(tool_events[index].layer);
    }
}

static int member_count(enum member kind)
{
    return kind == MEMBER_CVAR ? tool_cvar_count() : kind == MEMBER_PVAR ? tool_pvar_count() : EVENT_TYPES;
}

/* Returns the number of the layer's members of a kind; stores the first `len` of them in `indices`. */
static int category_members(int layer, enum member kind, int len, int indices[])
{
    int n = 0;
    for (int i = 0; i < member_count(kind); i++) {
        if (member_layer(kind, i) != layer)
            continue;
        if (indices && n < len)
            indices[n] = i;
        n++;
    }
    return n;
}

static bool has_children(int layer);

static bool is_used(int layer)
{
    for (enum member kind = MEMBER_CVAR; kind <= MEMBER_EVENT; kind++)
        if (category_members(layer, kind, 0, NULL) > 0)
            return true;
    return has_children(layer);
}

static bool has_children(int layer)
{
    for (int i = 0; i < LAYERS; i++)
        if (layers[i].parent && strcmp(layers[i].parent, layers[layer].name) == 0 && is_used(i))
            return true;
    return false;
}

/* Returns the layer of a category, or -1 if there is no such category. Categories are the layers in use. */
static int category_layer(int category)
{
    for (int i = 0; i < LAYERS && category >= 0; i++)
        if (is_used(i) && category-- == 0)
            return i;
    return -1;
}

static int layer_category(int layer)
{
    int n = 0;
    for (int i = 0; i < layer; i++)
        n += is_used(i);
    return n;
}

static int category_children(int layer, int len, int indices[])
{
    int n = 0;
    for (int i = 0; i < LAYERS; i++) {
        if (!layers[i].parent || strcmp(layers[i].parent, layers[layer].name) != 0 || !is_used(i))
            continue;
        if (indices && n < len)
            indices[n] = layer_category(i);
        n++;
    }
    return n;
}

int impl_T_category_get_num(int *num_cat)
{
    TOOL_OUT(num_cat, layer_category(LAYERS));
    return 0;
}

int impl_T_category_get_info(int cat_index, char *name, int *name_len, char *desc, int *desc_len,
                             int *num_cvars, int *num_pvars, int *num_categories)
{
    int layer = category_layer(cat_index);
    if (layer < 0)
        return MPI_T_ERR_INVALID_INDEX;
    tool_string(layers[layer].name, name, name_len);
    tool_string(layers[layer].doc, desc, desc_len);
    TOOL_OUT(num_cvars, category_members(layer, MEMBER_CVAR, 0, NULL));
    TOOL_OUT(num_pvars, category_members(layer, MEMBER_PVAR, 0, NULL));
    TOOL_OUT(num_categories, category_children(layer, 0, NULL));
    return 0;
}

int impl_T_category_get_num_events(int cat_index, int *num_events)
{
    int layer = category_layer(cat_index);
    if (layer < 0)
        return MPI_T_ERR_INVALID_INDEX;
    TOOL_OUT(num_events, category_members(layer, MEMBER_EVENT, 0, NULL));
    return 0;
}

int impl_T_category_get_index(const char *name, int *cat_index)
{
    int layer = layer_find(name);
    if (strcmp(layers[layer].name, name) != 0 || !is_used(layer))
        return MPI_T_ERR_INVALID_NAME;
    *cat_index = layer_category(layer);
    return 0;
}

static int list_members(int cat_index, enum member kind, int len, int indices[])
{
    int layer = category_layer(cat_index);
    if (layer < 0)
        return MPI_T_ERR_INVALID_INDEX;
    if (len < 0)
        return MPI_T_ERR_INVALID;
    category_members(layer, kind, len, indices);
    return 0;
}

int impl_T_category_get_cvars(int cat_index, int len, int indices[])
{
    return list_members(cat_index, MEMBER_CVAR, len, indices);
}

int impl_T_category_get_pvars(int cat_index, int len, int indices[])
{
    return list_members(cat_index, MEMBER_PVAR, len, indices);
}

int impl_T_category_get_events(int cat_index, int len, int indices[])
{
    return list_members(cat_index, MEMBER_EVENT, len, indices);
}

int impl_T_category_get_categories(int cat_index, int len, int indices[])
{
    int layer = category_layer(cat_index);
    if (layer < 0)
        return MPI_T_ERR_INVALID_INDEX;
    if (len < 0)
        return MPI_T_ERR_INVALID;
    category_children(layer, len, indices);
    return 0;
}
