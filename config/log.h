/*
 * The level and format of the log.
 */
#ifndef CONFIG_LOG_H
#define CONFIG_LOG_H

enum config_log_level { CONFIG_LOG_DEBUG, CONFIG_LOG_INFO, CONFIG_LOG_WARNING, CONFIG_LOG_ERROR };
enum config_log_format { CONFIG_LOG_TEXT, CONFIG_LOG_JSON };

#endif
