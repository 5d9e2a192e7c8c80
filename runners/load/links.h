/*
 * How full the network links of this host are: byte counters of the kernel against the speed that
 * a link says it has. Loopback, links without a speed, and links without a device are left out:
 * bridges and pairs of virtual links name a speed that limits nothing.
 */
#ifndef WB_LOAD_LINKS_H
#define WB_LOAD_LINKS_H

#include <stdint.h>

#define WB_LINKS_MAX 32

struct wb_link {
    char name[16];
    int64_t received, sent; /* bytes since boot */
    int64_t mbit_per_s;     /* of each direction */
};

struct wb_links {
    struct wb_link link[WB_LINKS_MAX];
    int n;
};

/* Reads PROC/net/dev and SYS/class/net/NAME/speed; n is 0 when there is nothing to read. */
void wb_links_read(const char *proc, const char *sys, struct wb_links *out);
/* Use of the fullest direction of the fullest link between two readings, in percent of its speed;
 * -1 when no link with a speed is in both. *name (static in `to`) is that link. */
double wb_links_busiest(const struct wb_links *from, const struct wb_links *to, double seconds,
                        const char **name);

#endif
