/*
 * How clients reach containers that are not on the host's network: one bridge network per run,
 * ports published on the host's loopback or the containers' own addresses.
 *
 * A published port on the loopback is mostly served by a process of the engine, docker-proxy. It
 * works for the database and takes its CPU time, so it is put into a control group of ours with
 * the instance's CPUs, where it can be counted.
 */
#ifndef WB_FORMS_DOCKER_NETWORK_H
#define WB_FORMS_DOCKER_NETWORK_H

#include "provisioners/forms/docker_api.h"
#include "provisioners/forms/form.h"

/* Name of a run's network; caller frees. */
char *wb_docker_network_name(const char *run);
/* Control group of the port proxy of an instance; caller frees. */
char *wb_docker_proxy_group(const char *run, int index);

/* WB_UNSUPPORTED when the engine has no bridge driver. */
int wb_docker_network_check(struct wb_engine *e, struct wb_err *err) WB_MUST_CHECK;
/* Makes the run's network; one of this run that is there already is taken. */
int wb_docker_network_make(struct wb_engine *e, const struct wb_form_env *env, const char *run,
                           struct wb_err *err) WB_MUST_CHECK;
/* Removes it unless other containers of the run are on it still. Absent: 0. */
int wb_docker_network_remove(struct wb_engine *e, const struct wb_form_env *env, const char *run,
                             struct wb_err *err) WB_MUST_CHECK;

/* Puts the proxy of the instance's published port into its group. 0 as well when there is none:
 * then the kernel forwards the port. */
int wb_docker_proxy_place(const struct wb_form_env *env, const struct wb_instance_spec *spec,
                          struct wb_err *err) WB_MUST_CHECK;

#endif
