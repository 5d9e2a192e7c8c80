/*
 * What is kept between campaigns to save time, thrown away when nobody is about to use it. Private
 * to server/engine; only for those who hold the host's lock, so that no campaign lives here.
 *
 * Prefixes and images are made again from the artifacts and the base image, which stay.
 */
#ifndef WB_ENGINE_PRUNE_H
#define WB_ENGINE_PRUNE_H

#include "server/engine/engine.h"

/* Removes the prefixes below the state folder that no campaign which can go on was begun with, and
 * the owner's images that no container uses. report->pruned gets {kind, id} of each, report->notes
 * what was kept and why. An error: something could not be removed. */
int wb_prune_caches(const struct wb_clean_spec *spec, const char *owner,
                    struct wb_clean_report *report, struct wb_err *err) WB_MUST_CHECK;

#endif
