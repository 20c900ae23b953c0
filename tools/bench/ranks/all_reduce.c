// MPI_Allreduce of n floats in place, as a program of C does it: prints the milliseconds of each repetition, those of the slowest rank.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  const int n = atoi(arguments[1]), repetitions = atoi(arguments[2]);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  float* x = malloc(sizeof(float) * n);
  for (int i = 0; i < n; i++) x[i] = 1;
  for (int k = 0; k < repetitions; k++) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    MPI_Allreduce(MPI_IN_PLACE, x, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    double milliseconds = 1e3 * (MPI_Wtime() - begin), slowest;
    MPI_Reduce(&milliseconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%.3f\n", slowest);
  }
  MPI_Finalize();
}
