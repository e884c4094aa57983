/*
 * JSON for programs, on standard output, two spaces deeper with each bracket.
 * Every value has a name, or NULL within an array and at the top. What is no
 * number becomes null, and bytes that are no UTF-8 become U+FFFD, so that the
 * result is always valid.
 */
#ifndef CALYX_TOOL_JSON_H
#define CALYX_TOOL_JSON_H

#include <stdbool.h>
#include <stdint.h>

void json_open(const char *name, char bracket); /* '{' or '[' */
void json_close(void);

void json_text(const char *name, const char *text);
void json_count(const char *name, uint64_t count);
void json_number(const char *name, double number);
void json_answer(const char *name, bool answer);

#endif
