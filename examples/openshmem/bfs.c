/* SPDX-License-Identifier: Apache-2.0
 * bfs: breadth-first search of a random graph that is spread over all PEs. A vertex has a level,
 * the number of edges between it and the root. All PEs look at the vertices of one level, and claim
 * the neighbours that nobody has reached before; those are the next level.
 *
 *   oshrun -n 4 ./bfs [vertices [edges]]
 */
#include "example.h"

enum { kRoot = 0, kUnreached = -1 };

typedef struct {
  long vertices, edges;
  long each; /* vertices a PE owns: vertex v is number v % each of PE v / each */
} Graph;

typedef struct {
  long a, b;
} Edge;

static Edge edge(const Graph* graph, long i) {
  uint64_t n = (uint64_t)graph->vertices;
  return (Edge){(long)(random_number(2 * (uint64_t)i) % n),
                (long)(random_number(2 * (uint64_t)i + 1) % n)};
}

/* The neighbours of this PE's vertices: those of the v-th are ends[begins[v]] and following, up to
 * begins[v + 1]. */
typedef struct {
  long *begins, *ends;
} Neighbors;

/* Every PE goes through all edges for its own; a real program would read its part of a file. */
static Neighbors find_neighbors(const Graph* graph, int me) {
  long first = me * graph->each;
  long* begins = local("bfs", calloc((size_t)graph->each + 2, sizeof *begins));
  for (long i = 0; i < graph->edges; ++i) {
    Edge e = edge(graph, i);
    if (e.a / graph->each == me) ++begins[e.a - first + 2];
    if (e.b / graph->each == me) ++begins[e.b - first + 2];
  }
  for (long v = 0; v < graph->each; ++v) begins[v + 2] += begins[v + 1];
  /* begins[v + 1] is where v's neighbours begin now, and where they end when they are filled in. */
  long* ends = local("bfs", malloc(sizeof *ends * (size_t)(begins[graph->each + 1] + 1)));
  for (long i = 0; i < graph->edges; ++i) {
    Edge e = edge(graph, i);
    if (e.a / graph->each == me) ends[begins[e.a - first + 1]++] = e.b;
    if (e.b / graph->each == me) ends[begins[e.b - first + 1]++] = e.a;
  }
  return (Neighbors){begins, ends};
}

/* All symmetric: others write here. */
typedef struct {
  int* levels;  /* [each] */
  long* queue;  /* [each]: numbers of reached vertices of this PE, level after level */
  long* tail;   /* of the queue */
  long* counts; /* [2]: a reduction's source and result */
} Search;

/* Gives a vertex its level unless it has one. Of all PEs that try, one wins: the atomic tells
 * which, and the winner puts the vertex into its owner's queue. */
static void claim(const Search* search, const Graph* graph, long vertex, int level) {
  int owner = (int)(vertex / graph->each);
  long number = vertex % graph->each;
  if (shmem_int_atomic_compare_swap(&search->levels[number], kUnreached, level, owner) !=
      kUnreached)
    return;
  long place = shmem_long_atomic_fetch_inc(search->tail, owner);
  shmem_long_p(&search->queue[place], number, owner);
}

/* How many vertices of the level all PEs have together; all get the answer. */
static long count_all(const Search* search, long mine) {
  search->counts[0] = mine;
  if (shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &search->counts[1], &search->counts[0], 1) != 0)
    shmem_global_exit(kExitFailed);
  return search->counts[1];
}

/* Returns the number of levels. */
static int run(const Search* search, const Graph* graph, const Neighbors* neighbors, int me) {
  if (kRoot / graph->each == me) claim(search, graph, kRoot, 0);
  long done = 0; /* vertices in this PE's queue that belong to levels before */
  for (int level = 0;; ++level) {
    shmem_barrier_all(); /* the level is complete: all claims and puts have arrived */
    long end = shmem_long_atomic_fetch(search->tail, me);
    /* Nobody leaves the reduction, and adds to queues, before all have read their tails. */
    if (count_all(search, end - done) == 0) return level;
    for (; done < end; ++done) {
      long v = search->queue[done];
      for (long i = neighbors->begins[v]; i < neighbors->begins[v + 1]; ++i)
        claim(search, graph, neighbors->ends[i], level + 1);
    }
  }
}

/* Levels are right if and only if the root alone has level 0, no edge leads from a level to one
 * further than the next, or from a reached vertex to one that is not, and every reached vertex but
 * the root has a neighbour one level before it. Each PE looks at all edges, for its vertices. */
static long count_wrong(const Search* search, const Graph* graph, int me, int pes, long* reached) {
  size_t each = (size_t)graph->each;
  int* all = symmetric("bfs", shmem_malloc(sizeof *all * each * (size_t)pes));
  if (shmem_int_fcollect(SHMEM_TEAM_WORLD, all, search->levels, each) != 0)
    shmem_global_exit(kExitFailed);
  char* has_parent = local("bfs", calloc((size_t)graph->vertices, 1));
  long wrong = 0;
  for (long i = 0; i < graph->edges; ++i) {
    Edge e = edge(graph, i);
    int a = all[e.a], b = all[e.b];
    int is_mine = e.a / graph->each == me || e.b / graph->each == me;
    int is_right = (a == kUnreached) == (b == kUnreached) && abs(a - b) <= 1;
    wrong += is_mine && !is_right;
    if (a != kUnreached && b == a + 1) has_parent[e.b] = 1;
    if (b != kUnreached && a == b + 1) has_parent[e.a] = 1;
  }
  *reached = 0;
  for (long v = 0; v < graph->vertices; ++v) {
    int is_mine = v / graph->each == me;
    int is_right = v == kRoot ? all[v] == 0 : all[v] == kUnreached || (all[v] > 0 && has_parent[v]);
    wrong += is_mine && !is_right;
    *reached += all[v] != kUnreached;
  }
  free(has_parent);
  shmem_free(all);
  return wrong;
}

int main(int argc, char** argv) {
  shmem_init();
  Argument arguments[] = {{"vertices", 1, 1000000000, 100000}, {"edges", 0, 10000000000, 400000}};
  read_arguments("bfs", argc, argv, arguments, 2);
  int me = shmem_my_pe(), pes = shmem_n_pes();
  Graph graph = {arguments[0].value, arguments[1].value, (arguments[0].value + pes - 1) / pes};
  size_t each = (size_t)graph.each;

  Search search = {.levels = symmetric("bfs", shmem_malloc(each * sizeof(int))),
                   .queue = symmetric("bfs", shmem_malloc(each * sizeof(long))),
                   .tail = symmetric("bfs", shmem_calloc(1, sizeof(long))),
                   .counts = symmetric("bfs", shmem_malloc(2 * sizeof(long)))};
  for (long v = 0; v < graph.each; ++v) search.levels[v] = kUnreached;
  Neighbors neighbors = find_neighbors(&graph, me);

  shmem_barrier_all(); /* nobody claims before all levels are set */
  double start = seconds_now();
  int levels = run(&search, &graph, &neighbors, me);
  double seconds = seconds_now() - start;

  long reached;
  long wrong = count_wrong(&search, &graph, me, pes, &reached);
  free(neighbors.ends);
  free(neighbors.begins);
  shmem_free(search.counts);
  shmem_free(search.tail);
  shmem_free(search.queue);
  shmem_free(search.levels);
  return finish("bfs", seconds, wrong, "%ld vertices, %ld edges, %ld reached, %d levels",
                graph.vertices, graph.edges, reached, levels);
}
