#include "config/admin.h"

#include "config/url.h"

void admin_read(struct config *config, const struct yaml_node *value, struct report *report)
{
    url_free(&config->admin);
    url_read(value, "admin", URL_ADMIN, &config->admin, NULL, report);
}

void admin_check(const struct config *config, const struct yaml_node *value, struct report *report)
{
    if (config->admin.host == NULL)
        return;
    if (!config->insecure && !url_is_local(&config->admin))
        report_error(report, value->mark,
                     "admin: %s can be reached from other hosts, and shows anybody who reaches it "
                     "the names of resources; write http://127.0.0.1:%u, or set insecure: true",
                     config->admin.url, config->admin.port);
    for (size_t i = 0; i < config->listen_count; i++)
        if (url_collides(&config->listens[i].address, &config->admin))
            report_error(report, value->mark,
                         "admin: %s is where clients connect (listen: %s); give it another port",
                         config->admin.url, config->listens[i].address.url);
}

void admin_free(struct config *config)
{
    url_free(&config->admin);
}
