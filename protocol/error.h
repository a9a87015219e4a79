/*
 * An error a person reads: what was wrong, and what would be right.
 *
 * The text is one line, without a final full stop or line feed, and already safe to print: whoever
 * fills it has escaped bytes that came from outside.
 */
#ifndef PROTOCOL_ERROR_H
#define PROTOCOL_ERROR_H

struct error {
    char text[240];
};

#endif
