/*
 * Passwords in URLs on the command line.
 *
 * Anybody who lists processes can read the command line. So main overwrites
 * passwords there before anything else, from :// to the last @, whether that is
 * a valid URL or not. Words then show *** instead, and only as_given() returns
 * the original. So no message can show a password, whichever word it quotes.
 * The price: a file whose name looks like such a URL is not found unless the
 * name begins with ./, ../ or /.
 */
#ifndef CALYX_TOOL_PASSWORDS_H
#define CALYX_TOOL_PASSWORDS_H

#include <stddef.h>

/* Replace the passwords in the words of the command line by ***. */
void hide_passwords(int count, char **words);

/* The word as the user wrote it. For use and storage, never for a message. */
const char *as_given(const char *word);

/* Bytes to hide in `rest`, which follows ://. They extend to the last @: a
 * password with an unescaped / seems to end at that slash. */
size_t secret_size(const char *rest);

#endif
