/*
 * Images of the docker form: a base from the distribution's packages plus a recipe's prefix,
 * imported as one layer. No registry and no image builder takes part.
 *
 * Images stay as a cache between campaigns (label wb.image.kind=cache); they are not leftovers, and
 * go only when they are asked to.
 */
#ifndef WB_FORMS_DOCKER_IMAGE_H
#define WB_FORMS_DOCKER_IMAGE_H

#include "provisioners/forms/docker_api.h"
#include "provisioners/forms/form.h"

/* Where things are inside a container. */
#define WB_DOCKER_ROOT "/wb"
#define WB_DOCKER_PREFIX WB_DOCKER_ROOT "/prefix"
#define WB_DOCKER_CONFIG WB_DOCKER_ROOT "/config"
#define WB_DOCKER_DATA WB_DOCKER_ROOT "/data"
#define WB_DOCKER_LOG WB_DOCKER_ROOT "/log"

/* Finds or makes the image of these bits. *image becomes its id "sha256:..." (owned by the
 * caller); facts gets {id, layer, bits, base, made}. */
int wb_docker_image_make(struct wb_engine *e, const struct wb_form_env *env,
                         const struct wb_bits *bits, char **image, wb_json *facts,
                         struct wb_err *err) WB_MUST_CHECK;
/* Removes the owner's images, one after the other; one that a container uses stays, see
 * wb_forms_prune. */
int wb_docker_images_prune(struct wb_engine *e, const char *owner, wb_form_pruned_fn fn, void *arg,
                           struct wb_err *err) WB_MUST_CHECK;

#endif
