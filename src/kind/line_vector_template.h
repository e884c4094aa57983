/*
 * Template: what every vector level does in the same way with its own
 * registers. Included once a level, after the level defined
 *
 *     TARGET                 the attribute that enables its instructions
 *     vline                  a line in registers
 *     vload                  from memory at any address
 *     vstore                 to memory, aligned to 64 bytes
 *     vand vor vxor          bit by bit; vandnot(a, b) is a & ~b
 *     vany                   is any bit set?
 *     vwords                 which words of 64 bits have a bit set, one bit
 *                            each
 *     vmask                  the bits of a key in its line
 *
 * It leaves add_to_line_atomic for line_template.h.
 */

TARGET ALWAYS_INLINE bool add_to_line_atomic(uint8_t *line,
                                             const uint64_t *hash,
                                             struct line_choice choice) {
    struct line_mask missing;
    /* What the line lacks of the key. Nothing, if the key is there: then no
     * locked instruction is used. */
    const vline bits = vandnot(vmask(hash, choice), vload(line));
    const uint32_t words = vwords(bits);
    vstore(&missing, bits);
    line_set_atomic(line, &missing, words);
    return words != 0;
}
