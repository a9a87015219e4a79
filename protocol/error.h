/*
 * struct error lies in protocol/text.h.
 */
#ifndef PROTOCOL_ERROR_H
#define PROTOCOL_ERROR_H

#include "protocol/text.h"

#endif
