/* SPDX-License-Identifier: Apache-2.0
 * stencil: heat spreads on a plate. In each step a cell becomes the mean of its four neighbours
 * (Jacobi's method, 5 points). Each PE has a block of the cells, and gets the edges of the blocks
 * around it, its halo, by put with signal. Nobody waits for more than its four neighbours.
 *
 *   oshrun -n 6 ./stencil [rows [columns [steps]]]
 */
#include "example.h"

#include <float.h>
#include <math.h>

enum { kNorth, kSouth, kWest, kEast, kSides }; /* side ^ 1 is the opposite one */

/* This PE's block, and the ring of cells around it: those of the neighbours, or the plate's rim,
 * which is 0 always. */
typedef struct {
  Range rows, columns;  /* of the plate */
  long height, width;   /* of the block, without the ring */
  int neighbor[kSides]; /* a PE, or -1 at the rim */
  double *cells, *next; /* height + 2 rows of width + 2 */
} Block;

/* Edges that neighbours put here, and how they say so. There are two of each, for even and odd
 * steps: a neighbour may be one step ahead, never two, because it needs an edge from here, too. */
typedef struct {
  double* edges;     /* [2][kSides][longest] */
  uint64_t* arrived; /* [2][kSides]: the step (from 1) whose edge is there */
  double* packed;    /* [longest] */
  long longest;      /* cells of the longest edge of any block */
} Halo;

static double* cell(const Block* b, double* cells, long row, long column) {
  return &cells[row * (b->width + 2) + column];
}

/* One side's cells: the block's own edge, or the part of the ring that lies next to it. */
typedef struct {
  double* first;
  long stride, length;
} Line;

static Line line(const Block* b, int side, int is_ring) {
  long row = side == kSouth ? b->height + is_ring : 1 - (side == kNorth && is_ring);
  long column = side == kEast ? b->width + is_ring : 1 - (side == kWest && is_ring);
  if (side == kNorth || side == kSouth) return (Line){cell(b, b->cells, row, column), 1, b->width};
  return (Line){cell(b, b->cells, row, column), b->width + 2, b->height};
}

static void exchange_halo(const Block* b, const Halo* halo, long step) {
  int odd = step % 2;
  for (int side = 0; side < kSides; ++side) {
    if (b->neighbor[side] < 0) continue;
    Line edge = line(b, side, 0);
    for (long i = 0; i < edge.length; ++i) halo->packed[i] = edge.first[i * edge.stride];
    int there = odd * kSides + (side ^ 1); /* my north edge is the south part of its ring */
    shmem_double_put_signal(&halo->edges[there * halo->longest], halo->packed, (size_t)edge.length,
                            &halo->arrived[there], (uint64_t)step, SHMEM_SIGNAL_SET,
                            b->neighbor[side]);
  }
  for (int side = 0; side < kSides; ++side) {
    if (b->neighbor[side] < 0) continue;
    int here = odd * kSides + side;
    shmem_signal_wait_until(&halo->arrived[here], SHMEM_CMP_EQ, (uint64_t)step);
    Line ring = line(b, side, 1);
    for (long i = 0; i < ring.length; ++i)
      ring.first[i * ring.stride] = halo->edges[here * halo->longest + i];
  }
}

static void compute(Block* b) {
  for (long row = 1; row <= b->height; ++row) {
    const double* here = cell(b, b->cells, row, 0);
    const double *above = here - (b->width + 2), *below = here + (b->width + 2);
    double* result = cell(b, b->next, row, 0);
    for (long j = 1; j <= b->width; ++j)
      result[j] = 0.25 * (above[j] + below[j] + here[j - 1] + here[j + 1]);
  }
  double* swap = b->cells;
  b->cells = b->next;
  b->next = swap;
}

/* The answer is known: a wave with p half periods down and q across keeps its form, and each step
 * multiplies it by the mean of the cosines of its two phases per cell. There are two waves here. */
static double answer(long row, long column, const Argument* size, long step) {
  const int p[] = {1, 2}, q[] = {1, 3};
  double sum = 0;
  for (int wave = 0; wave < 2; ++wave) {
    double down = p[wave] * acos(-1) / (double)(size[0].value + 1);
    double across = q[wave] * acos(-1) / (double)(size[1].value + 1);
    double factor = (cos(down) + cos(across)) / 2;
    sum += pow(factor, (double)step) * sin(down * (double)(row + 1)) *
           sin(across * (double)(column + 1));
  }
  return sum;
}

/* Rounding moves a cell by a few units in the last place per step; a halo that came too late or in
 * the wrong place moves it by far more. */
static long count_wrong(const Block* b, const Argument* size, long steps) {
  double tolerance = 16 * (double)(steps + 8) * DBL_EPSILON;
  long wrong = 0;
  for (long i = 0; i < b->height; ++i)
    for (long j = 0; j < b->width; ++j) {
      double expected = answer(b->rows.first + i, b->columns.first + j, size, steps);
      wrong += !(fabs(*cell(b, b->cells, i + 1, j + 1) - expected) <= tolerance);
    }
  return wrong;
}

/* Deals the plate out to a grid of down x across PEs, as square as their number allows. */
static Block make_block(const Argument* size, int down, int across) {
  int me = shmem_my_pe(), row = me / across, column = me % across;
  Block b = {.rows = share(size[0].value, down, row),
             .columns = share(size[1].value, across, column),
             .neighbor = {row > 0 ? me - across : -1, row < down - 1 ? me + across : -1,
                          column > 0 ? me - 1 : -1, column < across - 1 ? me + 1 : -1}};
  b.height = b.rows.end - b.rows.first;
  b.width = b.columns.end - b.columns.first;
  size_t cells = (size_t)(b.height + 2) * (size_t)(b.width + 2);
  b.cells = local("stencil", calloc(cells, sizeof(double)));
  b.next = local("stencil", calloc(cells, sizeof(double)));
  for (long i = 0; i < b.height; ++i)
    for (long j = 0; j < b.width; ++j)
      *cell(&b, b.cells, i + 1, j + 1) = answer(b.rows.first + i, b.columns.first + j, size, 0);
  return b;
}

int main(int argc, char** argv) {
  shmem_init();
  enum { kRows, kColumns, kSteps, kArguments };
  Argument arguments[kArguments] = {
      {"rows", 1, 100000, 400}, {"columns", 1, 100000, 400}, {"steps", 0, 1000000, 100}};
  read_arguments("stencil", argc, argv, arguments, kArguments);
  long steps = arguments[kSteps].value;
  int pes = shmem_n_pes(), across = 1;
  for (int i = 1; i * i <= pes; ++i)
    if (pes % i == 0) across = i;
  int down = pes / across;
  if (arguments[kRows].value < down || arguments[kColumns].value < across)
    leave("stencil", kExitWrongUse, "the plate has too few rows or columns for so many PEs");

  Block block = make_block(arguments, down, across);
  Range tallest = share(arguments[kRows].value, down, 0);
  Range widest = share(arguments[kColumns].value, across, 0);
  Halo halo = {.longest = tallest.end > widest.end ? tallest.end : widest.end};
  size_t edge_bytes = (size_t)halo.longest * sizeof(double);
  halo.edges = symmetric("stencil", shmem_malloc(edge_bytes * kSides * 2));
  halo.arrived = symmetric("stencil", shmem_calloc((size_t)2 * kSides, sizeof(uint64_t)));
  halo.packed = local("stencil", malloc(edge_bytes));

  shmem_barrier_all();
  double start = seconds_now();
  for (long step = 1; step <= steps; ++step) {
    exchange_halo(&block, &halo, step);
    compute(&block);
  }
  shmem_barrier_all();
  double seconds = seconds_now() - start;

  long wrong = count_wrong(&block, arguments, steps);
  shmem_free(halo.arrived);
  shmem_free(halo.edges);
  free(halo.packed);
  free(block.next);
  free(block.cells);
  return finish("stencil", seconds, wrong, "%ld x %ld cells on %d x %d PEs, %ld steps",
                arguments[kRows].value, arguments[kColumns].value, down, across, steps);
}
