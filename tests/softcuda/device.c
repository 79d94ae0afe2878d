/* device.c: devices and contexts of softcuda, and failures on demand.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softcuda.h"

pthread_mutex_t softcuda_lock = PTHREAD_MUTEX_INITIALIZER;

static struct cuda_context primary[DEVICES_MOST];
static bool is_initialised;

static __thread cuda_context stack[16];
static __thread int depth; /* stack[depth - 1] is the current context */

uint64_t softcuda_setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

/* Example: with SOFTCUDA_FAIL=cuMemAlloc_v2,cuIpcGetMemHandle:3 every call of the first function and the
 * third call of the second function fail. */
bool softcuda_must_fail(const char *function)
{
    static struct {
        const char *name;
        uint64_t calls;
    } seen[64];
    const char *list = getenv("SOFTCUDA_FAIL");
    const size_t length = strlen(function);
    if (!list)
        return false;
    pthread_mutex_lock(&softcuda_lock);
    size_t i = 0;
    while (i < 63 && seen[i].name && strcmp(seen[i].name, function) != 0)
        i++;
    seen[i].name = function;
    const uint64_t number = ++seen[i].calls;
    pthread_mutex_unlock(&softcuda_lock);
    for (const char *it = list; it; it = strchr(it, ',') ? strchr(it, ',') + 1 : NULL)
        if (strncmp(it, function, length) == 0 && strchr(":,", it[length]))
            return it[length] != ':' || strtoull(it + length + 1, NULL, 10) == number;
    return false;
}

bool softcuda_is_initialised(void)
{
    return is_initialised;
}

int softcuda_device_count(void)
{
    const uint64_t wanted = softcuda_setting("SOFTCUDA_DEVICES", 1);
    return (int)(wanted < DEVICES_MOST ? wanted : DEVICES_MOST);
}

bool softcuda_are_peers(int device, int other)
{
    return device == other || softcuda_setting("SOFTCUDA_PEERS", 1) != 0;
}

cuda_context softcuda_current(void)
{
    return depth > 0 ? stack[depth - 1] : NULL;
}

struct origin softcuda_origin(void)
{
    const cuda_context context = softcuda_current();
    return (struct origin){context, context ? context->resets : 0};
}

bool softcuda_is_valid(const struct origin *origin)
{
    return !origin->context || origin->resets == origin->context->resets;
}

EXPORT cuda_result cuInit(unsigned flags)
{
    if (flags != 0 || softcuda_must_fail(__func__))
        return CUDA_INVALID_VALUE;
    if (softcuda_device_count() == 0)
        return CUDA_NO_DEVICE;
    is_initialised = true;
    return CUDA_OK;
}

EXPORT cuda_result cuDriverGetVersion(int *version)
{
    *version = 13000;
    return CUDA_OK;
}

static const struct {
    cuda_result result;
    const char *name, *text;
} errors[] = {
    {CUDA_OK, "CUDA_SUCCESS", "no error"},
    {CUDA_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_PEERS_UNSUPPORTED, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
     "peer access is not supported between these two devices"},
    {CUDA_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
};

EXPORT cuda_result cuGetErrorName(cuda_result result, const char **name)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
        if (errors[i].result == result)
            return *name = errors[i].name, CUDA_OK;
    return CUDA_INVALID_VALUE;
}

EXPORT cuda_result cuGetErrorString(cuda_result result, const char **text)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
        if (errors[i].result == result)
            return *text = errors[i].text, CUDA_OK;
    return CUDA_INVALID_VALUE;
}

EXPORT cuda_result cuDeviceGetCount(int *count)
{
    if (!is_initialised)
        return CUDA_NOT_INITIALIZED;
    *count = softcuda_device_count();
    return CUDA_OK;
}

EXPORT cuda_result cuDeviceGet(cuda_device *device, int ordinal)
{
    if (!is_initialised)
        return CUDA_NOT_INITIALIZED;
    if (ordinal < 0 || ordinal >= softcuda_device_count())
        return CUDA_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_OK;
}

EXPORT cuda_result cuDeviceGetName(char *name, int size, cuda_device device)
{
    snprintf(name, (size_t)size, "softcuda %d", device);
    return CUDA_OK;
}

EXPORT cuda_result cuDeviceTotalMem_v2(size_t *bytes, cuda_device device)
{
    (void)device;
    *bytes = softcuda_setting("SOFTCUDA_MEMORY", (uint64_t)1 << 30);
    return CUDA_OK;
}

EXPORT cuda_result cuDeviceGetAttribute(int *value, int attribute, cuda_device device)
{
    switch (attribute) {
    case CUDA_DEVICE_PCI_BUS:
        *value = 0x10 + device;
        break;
    case CUDA_DEVICE_COMPUTE_MAJOR:
        *value = 9;
        break;
    case CUDA_DEVICE_MPS:
        *value = (int)softcuda_setting("SOFTCUDA_MPS", 0);
        break;
    case CUDA_DEVICE_DMA_BUF:
    case CUDA_DEVICE_GPU_DIRECT_RDMA:
        *value = 1;
        break;
    default:
        *value = 0;
    }
    return CUDA_OK;
}

EXPORT cuda_result cuDevicePrimaryCtxGetState(cuda_device device, unsigned *flags, int *active)
{
    if (device < 0 || device >= softcuda_device_count())
        return CUDA_INVALID_DEVICE;
    *flags = 0;
    *active = primary[device].references > 0;
    return CUDA_OK;
}

EXPORT cuda_result cuDevicePrimaryCtxRetain(cuda_context *context, cuda_device device)
{
    if (!is_initialised)
        return CUDA_NOT_INITIALIZED;
    if (device < 0 || device >= softcuda_device_count())
        return CUDA_INVALID_DEVICE;
    if (softcuda_must_fail(__func__))
        return CUDA_OUT_OF_MEMORY;
    pthread_mutex_lock(&softcuda_lock);
    primary[device].device = device;
    primary[device].references++;
    pthread_mutex_unlock(&softcuda_lock);
    *context = &primary[device];
    return CUDA_OK;
}

EXPORT cuda_result cuDevicePrimaryCtxRelease_v2(cuda_device device)
{
    if (device < 0 || device >= softcuda_device_count() || primary[device].references == 0)
        return CUDA_INVALID_CONTEXT;
    pthread_mutex_lock(&softcuda_lock);
    primary[device].references--;
    pthread_mutex_unlock(&softcuda_lock);
    return CUDA_OK;
}

/* Memory of the context is freed. As in driver 580, a program that retained the context can still push it,
 * but not use its streams and events. */
EXPORT cuda_result cuDevicePrimaryCtxReset_v2(cuda_device device)
{
    if (device < 0 || device >= softcuda_device_count())
        return CUDA_INVALID_DEVICE;
    softcuda_release_all(device);
    pthread_mutex_lock(&softcuda_lock);
    primary[device].resets++;
    pthread_mutex_unlock(&softcuda_lock);
    return CUDA_OK;
}

EXPORT cuda_result cuCtxPushCurrent_v2(cuda_context context)
{
    if (softcuda_must_fail(__func__) || !context || context->references == 0 ||
        depth == (int)(sizeof(stack) / sizeof(*stack)))
        return CUDA_INVALID_CONTEXT;
    stack[depth++] = context;
    return CUDA_OK;
}

EXPORT cuda_result cuCtxPopCurrent_v2(cuda_context *context)
{
    if (depth == 0)
        return CUDA_INVALID_CONTEXT;
    *context = stack[--depth];
    return CUDA_OK;
}

EXPORT cuda_result cuCtxSetCurrent(cuda_context context)
{
    if (depth == 0)
        depth = 1;
    stack[depth - 1] = context;
    return CUDA_OK;
}

EXPORT cuda_result cuCtxGetCurrent(cuda_context *context)
{
    *context = softcuda_current();
    return CUDA_OK;
}

EXPORT cuda_result cuCtxGetDevice(cuda_device *device)
{
    if (!softcuda_current())
        return CUDA_INVALID_CONTEXT;
    *device = softcuda_current()->device;
    return CUDA_OK;
}
