/* Truss numbers by igraph's C library, timed.
 *
 *     igraph_trussness EDGES FOUND
 *
 * EDGES holds int32 numbers: how many vertices, then the two ends of every edge. FOUND gets int32 truss numbers, edge by
 * edge. Prints the seconds that igraph_trussness took, without reading, building and writing. Without arguments, prints
 * igraph's version.
 */

#include <igraph.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void fail(const char *what) {
    perror(what);
    exit(1);
}

/* All int32 numbers of a file; how many there are goes to *count. */
static int32_t *read_numbers(const char *path, size_t *count) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) fail(path);
    *count = (size_t)ftell(file) / sizeof(int32_t);
    rewind(file);
    int32_t *numbers = malloc(*count * sizeof(int32_t));
    if (!numbers || fread(numbers, sizeof(int32_t), *count, file) != *count) fail(path);
    fclose(file);
    return numbers;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        const char *version;
        igraph_version(&version, NULL, NULL, NULL);
        puts(version);
        return argc > 1;
    }
    size_t count;
    int32_t *numbers = read_numbers(argv[1], &count);

    igraph_vector_int_t ends, trussness;
    igraph_vector_int_init(&ends, (igraph_integer_t)count - 1);
    igraph_vector_int_init(&trussness, 0);
    for (size_t k = 1; k < count; k++) VECTOR(ends)[k - 1] = numbers[k];
    igraph_t graph;
    igraph_create(&graph, &ends, numbers[0], IGRAPH_UNDIRECTED);

    double begin = now();
    igraph_trussness(&graph, &trussness);
    double seconds = now() - begin;

    FILE *file = fopen(argv[2], "wb");
    if (!file) fail(argv[2]);
    for (igraph_integer_t e = 0; e < igraph_vector_int_size(&trussness); e++) {
        int32_t found = (int32_t)VECTOR(trussness)[e];
        if (fwrite(&found, sizeof found, 1, file) != 1) fail(argv[2]);
    }
    if (fclose(file)) fail(argv[2]);

    printf("%.6f\n", seconds);
    igraph_destroy(&graph);
    igraph_vector_int_destroy(&ends);
    igraph_vector_int_destroy(&trussness);
    free(numbers);
    return 0;
}
