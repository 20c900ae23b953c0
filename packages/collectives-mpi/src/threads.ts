/** Ranks of one machine share its cores: more threads than cores would wait for each other. */
import { availableParallelism, cpus } from "node:os";

type Lookup = (name: string) => string | undefined;

/** How many threads a rank's devices take; undefined where the user has said it, or the launcher by binding the rank to cores of its own. */
export function threadsOf(lookup: Lookup, bound = availableParallelism(), cores = cpus().length): number | undefined {
  if (lookup("OPT_NUM_THREADS") !== undefined || bound < cores) return undefined;
  const names = ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"];
  const local = Number(names.map(lookup).find((value) => value !== undefined));
  return local > 0 ? Math.max(1, Math.floor(bound / local)) : undefined;
}
