// Damages flight recorders and has them shortened: for the address and undefined-behavior sanitizers of gcc or Clang.
//
//     cc -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -o fuzz native/fuzz_recorder.c && ./fuzz COUNT SEED FILE...
//
// Each input is a copy in memory of exactly its length. Prints how many were read, and how many were shortened.

#include <stdio.h>

#include "recorder.c"

static uint64_t state;

static uint64_t draw(uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
}

int main(int count, char **arguments) {
    if (count < 4) return 2;
    long inputs = atol(arguments[1]), shortened = 0;
    state = (uint64_t)atol(arguments[2]);
    for (long i = 0; i < inputs; i++) {
        FILE *file = fopen(arguments[3 + draw((uint64_t)count - 3)], "rb");
        if (!file) return 2;
        uint8_t *whole = malloc(1 << 20);
        uint64_t size = fread(whole, 1, 1 << 20, file);
        fclose(file);
        if (!draw(4)) size = draw(size + 1);
        uint8_t *bytes = malloc(size ? size : 1);
        memcpy(bytes, whole, size);
        free(whole);
        static const uint8_t opcodes[] = "hjqrKMJGN(}]\x75\x65s)at.X\x85\x86\x87\x8a\x8c\x94\x95\x88\x89";
        for (uint64_t changes = draw(6); size && changes; changes--)
            bytes[draw(size)] = draw(2) ? (uint8_t)draw(256) : opcodes[draw(sizeof opcodes - 1)];
        uint64_t length;
        uint8_t *out = recorder_shorten(bytes, size, state, &length);
        if (out) shortened++;
        recorder_free(out);
        free(bytes);
    }
    printf("%ld read, %ld shortened\n", inputs, shortened);
    return 0;
}
