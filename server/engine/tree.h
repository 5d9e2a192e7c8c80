/*
 * Digest of a tree of files.
 */
#ifndef WB_ENGINE_TREE_H
#define WB_ENGINE_TREE_H

#include "server/base/digest.h"

/* SHA-256 over a tree: for each entry below root, in order of names, its type, permission bits,
 * path, and content or link target. Owners and times do not count. WB_UNSUPPORTED on anything
 * that is not a file, folder or symbolic link. */
int wb_tree_digest(const char *root, char hex[WB_SHA256_HEX], struct wb_err *err) WB_MUST_CHECK;

#endif
