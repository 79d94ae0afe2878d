/* test_ib_near.c: finds the adapters nearest to a GPU in a simulated sysfs tree.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/device/near.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

static char root[256];

/* Creates the folder and its parent folders. */
static void make_folder(const char *path)
{
    char at[512];
    snprintf(at, sizeof(at), "%s/%s", root, path);
    for (char *slash = at + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        mkdir(at, 0700);
        *slash = '/';
    }
    mkdir(at, 0700);
}

static void make_link(const char *folder, const char *name, const char *to)
{
    char target[512], link[512];
    make_folder(folder);
    make_folder(to);
    snprintf(target, sizeof(target), "%s/%s", root, to);
    snprintf(link, sizeof(link), "%s/%s/%s", root, folder, name);
    EXPECT_EQ(symlink(target, link), 0);
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

/* GPU 18 shares a switch with mlx5_0 and a root port with mlx5_1; mlx5_2 is on the other socket, as GPU
 * 98. */
static void make_sysfs_tree(void)
{
    make_link("bus/pci/devices", "0000:18:00.0", "devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:18:00.0");
    make_link("class/infiniband/mlx5_0", "device",
              "devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:19:00.0");
    make_link("class/infiniband/mlx5_1", "device",
              "devices/pci0000:15/0000:15:01.0/0000:17:00.0/0000:20:00.0");
    make_link("bus/pci/devices", "0000:98:00.0", "devices/pci0000:97/0000:97:01.0/0000:98:00.0");
    make_link("class/infiniband/mlx5_2", "device", "devices/pci0000:97/0000:97:02.0/0000:99:00.0");
}

static void test_marks_nearest_adapters(void)
{
    struct net_port ports[] = {{.device = "mlx5_2", .near = 1}, {.device = "mlx5_0"}, {.device = "mlx5_1"}};
    ib_mark_ports_near_gpu(ports, 3, root, "0000:18:00.0");
    EXPECT(!ports[0].near && ports[1].near && !ports[2].near);
    ib_mark_ports_near_gpu(ports, 3, root, "0000:98:00.0");
    EXPECT(ports[0].near && !ports[1].near && !ports[2].near);
}

static void test_equal_distances_are_all_near(void)
{
    struct net_port ports[] = {{.device = "mlx5_0"}, {.device = "mlx5_0", .port = 2}, {.device = "mlx5_1"}};
    ib_mark_ports_near_gpu(ports, 3, root, "0000:18:00.0");
    EXPECT(ports[0].near && ports[1].near && !ports[2].near);
    ib_mark_ports_near_gpu(ports, 3, root, "0000:98:00.0");
    EXPECT(ports[0].near && ports[1].near && ports[2].near);
}

static void test_unknown_devices_change_nothing(void)
{
    struct net_port ports[] = {{.device = "mlx5_0", .near = 1}, {.device = "mlx5_1"}, {.device = "mlx5_9"}};
    ib_mark_ports_near_gpu(ports, 2, root, "0000:77:00.0");
    EXPECT(ports[0].near && !ports[1].near);
    ib_mark_ports_near_gpu(ports, 3, root, "0000:18:00.0");
    EXPECT(ports[0].near && !ports[1].near && !ports[2].near);
}

int main(void)
{
    const char *folder = getenv("TMPDIR");
    snprintf(root, sizeof(root), "%s/sysfs.XXXXXX", folder ? folder : "/tmp");
    if (!mkdtemp(root))
        return 1;
    make_sysfs_tree();
    TEST_RUN(test_marks_nearest_adapters);
    TEST_RUN(test_equal_distances_are_all_near);
    TEST_RUN(test_unknown_devices_change_nothing);
    nftw(root, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    return test_result();
}
