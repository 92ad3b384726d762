/* A direct solver of sparse systems of linear equations, in place of the paper's SuperLU_MT:
 * multifrontal Cholesky factorization of the five-point Laplacian on a square grid, numbered by
 * nested dissection. Regions of the grid are factored by user-level threads down to a depth.
 *
 *   solver grid=300 depth=6 lwps=4 slice=0 queues=shared
 *
 * A region is split by a separator, a line of points; the unknowns of the separator are eliminated
 * after those of both halves, in a dense matrix, the front, of the separator and the ring of points
 * round the region. The Schur complement of the ring is then added to the front of the enclosing
 * region.
 */
#include "common.h"

#include <math.h>

enum { LEAF = 16 };

struct region {
	int x0, x1, y0, y1;	/* half-open */
	int middle;		/* of the separator, if there are halves */
	bool is_leaf, is_split_in_x;
	int pivots, size;	/* unknowns that are eliminated here, and with the ring */
	double *front;		/* column-major; the lower triangle is used */
	struct region *halves[2];
};

static int grid, depth_of_threads;
static double *unknowns;

/* --- Numbering of a front: pivots, then the sides of the ring --- */

static int width(const struct region *region) { return region->x1 - region->x0; }
static int height(const struct region *region) { return region->y1 - region->y0; }

static int ring_length(const struct region *region)
{
	return height(region) * ((region->x0 > 0) + (region->x1 < grid)) +
	       width(region) * ((region->y0 > 0) + (region->y1 < grid));
}

/* The row of a point in the front, -1 if the point has been eliminated before. */
static int row_of(const struct region *region, int x, int y)
{
	int at = region->pivots;
	if (x >= region->x0 && x < region->x1 && y >= region->y0 && y < region->y1) {
		if (region->is_leaf)
			return (y - region->y0) * width(region) + x - region->x0;
		if (region->is_split_in_x)
			return x == region->middle ? y - region->y0 : -1;
		return y == region->middle ? x - region->x0 : -1;
	}
	if (region->x0 > 0) {
		if (x == region->x0 - 1)
			return at + y - region->y0;
		at += height(region);
	}
	if (region->x1 < grid) {
		if (x == region->x1)
			return at + y - region->y0;
		at += height(region);
	}
	if (region->y0 > 0) {
		if (y == region->y0 - 1)
			return at + x - region->x0;
		at += width(region);
	}
	return at + x - region->x0;
}

/* The point of a row. */
static void point_of(const struct region *region, int row, int *x, int *y)
{
	int at = row - region->pivots;
	if (at < 0) {
		*x = region->x0 + (region->is_leaf ? row % width(region) : region->is_split_in_x ? 0 : row);
		*y = region->y0 + (region->is_leaf ? row / width(region) : region->is_split_in_x ? row : 0);
		if (!region->is_leaf)
			*(region->is_split_in_x ? x : y) = region->middle;
		return;
	}
	for (int side = 0; side < 4; side++) {
		bool is_vertical = side < 2;
		bool is_there = side == 0 ? region->x0 > 0 : side == 1 ? region->x1 < grid :
				side == 2 ? region->y0 > 0 : region->y1 < grid;
		int length = is_there ? is_vertical ? height(region) : width(region) : 0;
		if (at < length) {
			*x = is_vertical ? side == 0 ? region->x0 - 1 : region->x1 : region->x0 + at;
			*y = is_vertical ? region->y0 + at : side == 2 ? region->y0 - 1 : region->y1;
			return;
		}
		at -= length;
	}
}

/* --- Factorization --- */

static double *entry(const struct region *region, int row, int column)
{
	return row >= column ? &region->front[(size_t)column * region->size + row] :
			       &region->front[(size_t)row * region->size + column];
}

/* Adds the equations of the pivots. */
static void assemble(struct region *region)
{
	TB_PROF_IN();
	static const int dx[] = { 1, -1, 0, 0 }, dy[] = { 0, 0, 1, -1 };
	region->front = calloc((size_t)region->size * region->size, sizeof(double));
	for (int pivot = 0; pivot < region->pivots; pivot++) {
		int x, y;
		point_of(region, pivot, &x, &y);
		*entry(region, pivot, pivot) += 4;
		for (int side = 0; side < 4; side++) {
			int nx = x + dx[side], ny = y + dy[side];
			if (nx < 0 || ny < 0 || nx >= grid || ny >= grid)
				continue;
			int row = row_of(region, nx, ny);
			if (row > pivot)
				*entry(region, row, pivot) -= 1;
		}
	}
	TB_PROF_OUT();
}

/* Adds the Schur complement of a half, and keeps only the half's factor. */
static void extend(struct region *region, struct region *half)
{
	TB_PROF_IN();
	int ring = half->size - half->pivots;
	int *rows = malloc((size_t)(ring + 1) * sizeof(*rows));
	for (int at = 0; at < ring; at++) {
		int x, y;
		point_of(half, half->pivots + at, &x, &y);
		rows[at] = row_of(region, x, y);
	}
	for (int column = 0; column < ring; column++)
		for (int row = column; row < ring; row++)
			*entry(region, rows[row], rows[column]) +=
				*entry(half, half->pivots + row, half->pivots + column);
	free(rows);
	half->front = realloc(half->front, (size_t)half->pivots * half->size * sizeof(double));
	TB_PROF_OUT();
}

/* Eliminates one unknown from the front. */
static void eliminate(struct region *region, int pivot)
{
	TB_PROF_IN();
	int size = region->size;
	double *restrict column = &region->front[(size_t)pivot * size];
	double root = sqrt(column[pivot]);
	for (int row = pivot; row < size; row++)
		column[row] /= root;
	for (int other = pivot + 1; other < size; other++) {
		double *restrict changed = &region->front[(size_t)other * size];
		double factor = column[other];
		for (int row = other; row < size; row++)
			changed[row] -= factor * column[row];
	}
	TB_PROF_OUT();
}

static void *factor(void *region);

static struct region *half_of(const struct region *region, bool is_second)
{
	struct region *half = calloc(1, sizeof(*half));
	*half = (struct region){ .x0 = region->x0, .x1 = region->x1, .y0 = region->y0, .y1 = region->y1 };
	int *edge = region->is_split_in_x ? is_second ? &half->x0 : &half->x1 : is_second ? &half->y0 : &half->y1;
	*edge = is_second ? region->middle + 1 : region->middle;
	return half;
}

static void factor_halves(struct region *region, int depth)
{
	mn_thread *thread = NULL;
	for (int index = 0; index < 2; index++) {
		struct region *half = region->halves[index] = half_of(region, index);
		half->size = depth + 1;
		if (index == 0 && depth < depth_of_threads) {
			char name[40];
			snprintf(name, sizeof(name), "region/%d,%d-%d,%d", half->x0, half->y0, half->x1, half->y1);
			thread = mn_create(name, factor, half);
		} else {
			factor(half);
		}
	}
	if (thread)
		mn_join(thread);
}

/* `size` of a new region is its depth. */
static void *factor(void *argument)
{
	struct region *region = argument;
	int depth = region->size;
	region->is_leaf = width(region) * height(region) <= LEAF || width(region) < 3 || height(region) < 3;
	region->is_split_in_x = width(region) >= height(region);
	region->middle = region->is_split_in_x ? (region->x0 + region->x1) / 2 : (region->y0 + region->y1) / 2;
	region->pivots = region->is_leaf ? width(region) * height(region) :
			 region->is_split_in_x ? height(region) : width(region);
	if (!region->is_leaf)
		factor_halves(region, depth);
	region->size = region->pivots + ring_length(region);
	assemble(region);
	for (int index = 0; index < 2 && !region->is_leaf; index++)
		extend(region, region->halves[index]);
	for (int pivot = 0; pivot < region->pivots; pivot++)
		eliminate(region, pivot);
	return NULL;
}

/* --- Solution, by the right side in `unknowns` --- */

static double *unknown(const struct region *region, int row)
{
	int x, y;
	point_of(region, row, &x, &y);
	return &unknowns[(size_t)y * grid + x];
}

static void solve_forward(const struct region *region)
{
	for (int index = 0; index < 2 && !region->is_leaf; index++)
		solve_forward(region->halves[index]);
	for (int pivot = 0; pivot < region->pivots; pivot++) {
		double value = *unknown(region, pivot) /= *entry(region, pivot, pivot);
		for (int row = pivot + 1; row < region->size; row++)
			*unknown(region, row) -= *entry(region, row, pivot) * value;
	}
}

static void solve_backward(const struct region *region)
{
	for (int pivot = region->pivots - 1; pivot >= 0; pivot--) {
		double value = *unknown(region, pivot);
		for (int row = pivot + 1; row < region->size; row++)
			value -= *entry(region, row, pivot) * *unknown(region, row);
		*unknown(region, pivot) = value / *entry(region, pivot, pivot);
	}
	for (int index = 0; index < 2 && !region->is_leaf; index++)
		solve_backward(region->halves[index]);
}

static void free_region(struct region *region)
{
	for (int index = 0; index < 2 && !region->is_leaf; index++)
		free_region(region->halves[index]);
	free(region->front);
	free(region);
}

static double solution(int x, int y) { return 1 + (x * 7 + y * 3) % 11; }

static double value_at(int x, int y)
{
	return x < 0 || y < 0 || x >= grid || y >= grid ? 0 : solution(x, y);
}

static double seconds, cpu_seconds;

static void *run(void *argument)
{
	struct region *region = calloc(1, sizeof(*region));
	(void)argument;
	region->x1 = region->y1 = grid;
	uint64_t begin = now_ns(), cpu_begin = cpu_ns();
	factor(region);
	seconds = (double)(now_ns() - begin) / 1e9;
	cpu_seconds = (double)(cpu_ns() - cpu_begin) / 1e9;
	for (int y = 0; y < grid; y++)
		for (int x = 0; x < grid; x++)
			unknowns[(size_t)y * grid + x] = 4 * solution(x, y) - value_at(x - 1, y) - value_at(x + 1, y) -
							 value_at(x, y - 1) - value_at(x, y + 1);
	solve_forward(region);
	solve_backward(region);
	free_region(region);
	return NULL;
}

int main(int count, char **arguments)
{
	(void)count;
	struct mn_options options = scheduler_options(arguments, 0);
	grid = (int)option(arguments, "grid", 300);
	depth_of_threads = (int)option(arguments, "depth", 6);
	unknowns = calloc((size_t)grid * grid, sizeof(*unknowns));
	mn_run(&options, run, NULL);
	double error = 0;
	for (int y = 0; y < grid; y++)
		for (int x = 0; x < grid; x++)
			error = fmax(error, fabs(unknowns[(size_t)y * grid + x] - solution(x, y)));
	printf("%d unknowns, %.6f s, CPU %.6f s, error %.1e\n", grid * grid, seconds, cpu_seconds, error);
	free(unknowns);
	return error > 1e-6;
}
